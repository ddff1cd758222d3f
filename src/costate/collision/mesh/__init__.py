"""Solids made of meshes and samples: convex hulls, distance grids, height fields, convex parts."""
