"""Free motion, integrators, and the advance of positions: the way from forces to the next state."""
