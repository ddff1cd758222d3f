"""The kinds of stages a program is made of, one per file."""
