"""Tasks of fluids: smoke that forms a picture, a plume that is steered, a shape with little drag."""
