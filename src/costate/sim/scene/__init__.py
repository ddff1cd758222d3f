"""Scenes: everything a world holds as one model, and the pairs of its shapes that may touch."""
