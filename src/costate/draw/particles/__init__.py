"""Particles and grids that change over time: what is shown of them, and pictures."""
