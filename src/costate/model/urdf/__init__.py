"""Robots from URDF files, and back."""
