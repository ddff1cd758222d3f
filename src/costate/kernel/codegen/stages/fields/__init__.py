"""Code of stages over fields."""
