"""Passes from programs to programs: optimisation, linearisation, Jacobians, flags for numbers that are not finite."""
