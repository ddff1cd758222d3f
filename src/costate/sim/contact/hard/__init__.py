"""Hard contact, solved to tolerance."""
