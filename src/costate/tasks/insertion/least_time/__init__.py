"""Least times of insertions: what no controller can beat, and the shortest horizon that a policy learns."""
