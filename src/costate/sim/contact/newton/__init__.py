"""Soft contact as MuJoCo defines it, solved to tolerance by Newton's method."""
