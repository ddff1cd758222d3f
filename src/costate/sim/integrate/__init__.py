"""From forces to the next state: free motion, integrators, and the advance of positions."""
