"""Free bodies as carriers of contact."""
