"""The trainer and everything around a trained policy: run folders, evaluation, progress, robustness."""
