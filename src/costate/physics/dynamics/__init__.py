"""The algorithms of rigid body dynamics, one per file."""
