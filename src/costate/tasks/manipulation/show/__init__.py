"""Seeing the tasks of a hand: arrows, the report of a run, and a live page."""
