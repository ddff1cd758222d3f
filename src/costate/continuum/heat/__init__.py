"""Transient heat in parts that grow: conduction, latent heat, a laser, convection and radiation, with gradients of everything."""
