"""Incompressible liquids with a free surface: particles that carry the liquid through a staggered grid with pressure."""
