"""Environments for reinforcement learning, with gradients."""
