"""Commands that make or read a run folder."""
