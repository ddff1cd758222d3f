"""Other packages' interfaces on top of Costate, for scripts that were written for them."""
