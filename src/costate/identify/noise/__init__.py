"""Noise in positions, and what it does to parameters."""
