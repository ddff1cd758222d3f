"""Contact of two convex solids: supports, separating directions, and the points in which they touch."""
