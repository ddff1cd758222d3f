"""The gradient audit: checks of functions, robots and worlds, the accuracy matrix, the smoothness report."""
