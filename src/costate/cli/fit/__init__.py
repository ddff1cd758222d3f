"""Commands that fit models to data."""
