"""Robots that knead dough, lift a soft ball, scoop sand and pour a liquid."""
