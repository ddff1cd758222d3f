"""Tasks whose motion has a few numbers that are found by search in the full world: wheel and flip."""
