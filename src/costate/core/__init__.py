"""Foundations that every layer may use: types of arrays, files, forked processes and names."""
