"""The race of training methods on the insertion: its task, its contestants."""
