"""Gymnasium's MuJoCo tasks, version 5, with their own files: a world steps as MuJoCo does, in batches and with gradients."""
