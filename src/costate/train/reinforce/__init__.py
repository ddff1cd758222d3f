"""Reinforcement learning with the gradients of the simulator: environments, and algorithms that learn in windows of steps."""
