"""The gradient audit: checks of functions, robots and worlds, and the smoothness report."""
