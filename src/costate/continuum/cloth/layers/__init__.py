"""Cloth and ropes that touch themselves and each other: pairs that are near, their energy, and steps that pass through nothing."""
