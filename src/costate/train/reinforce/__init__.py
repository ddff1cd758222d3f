"""Reinforcement learning with the gradients of the simulator: tasks with rewards, and algorithms that learn in windows of steps."""
