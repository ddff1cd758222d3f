"""Shards of trainings and evaluations: what workers are given, and what they compute."""
