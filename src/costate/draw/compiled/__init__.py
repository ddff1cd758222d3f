"""The loops of a picture over corners, triangles and pixels, as machine code."""
