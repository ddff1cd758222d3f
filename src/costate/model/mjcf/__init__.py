"""Robots from MJCF files, as compiled by MuJoCo, and parts of models as MJCF."""
