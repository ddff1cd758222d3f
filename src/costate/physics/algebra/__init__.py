"""Spatial algebra, quaternions, inertias and factorisations."""
