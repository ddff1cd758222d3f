"""Soft bodies, plasticine, sand and liquids: particles that carry matter through a grid (MLS-MPM)."""
