"""Incompressible fluids on grids: smoke that rises, flows around shapes and mixes, with gradients."""
