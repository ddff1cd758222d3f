"""Shapes, where they touch, and how far apart they are, as symbolic expressions and programs."""
