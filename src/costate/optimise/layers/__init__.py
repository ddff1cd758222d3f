"""Solutions of optimal control as layers: differentiable in what the problem is made of."""
