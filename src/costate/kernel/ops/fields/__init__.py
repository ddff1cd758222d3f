"""Stages over fields: one big sample, whose entities (nodes, elements, particles, cells) lie in the lanes."""
