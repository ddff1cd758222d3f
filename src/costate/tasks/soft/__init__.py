"""Soft robots and materials: walkers, co-design, identification."""
