"""Hard contact solved pair by pair: one program for all pairs of a kind."""
