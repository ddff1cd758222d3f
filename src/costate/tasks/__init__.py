"""Tasks: what robots are to do, one per file."""
