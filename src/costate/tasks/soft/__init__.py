"""Soft robots and materials: walkers, co-design, identification, plasticine, and robots among soft matter."""
