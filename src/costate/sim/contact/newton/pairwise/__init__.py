"""Soft contact pair by pair: one program for all pairs of a kind, run for those that touch."""
