"""Trees of links as carriers of contact."""
