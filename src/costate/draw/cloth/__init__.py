"""Cloth and ropes as surfaces: pictures and films of them, and files of animated meshes."""
