"""Worlds from files, and files from worlds."""
