"""Cloth and ropes: implicit steps of triangle meshes and chains, with contact, friction and gradients of everything."""
