"""Trainers, optimisers and identification from data."""
