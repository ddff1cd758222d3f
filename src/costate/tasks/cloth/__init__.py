"""Tasks of cloth: what it is made of, from how it moved."""
