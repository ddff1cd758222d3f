"""JAX in float64, as robots are computed."""

import jax

jax.config.update("jax_enable_x64", True)
