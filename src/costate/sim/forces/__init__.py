"""Forces on joints besides contact: actuators, tendons and equality constraints."""
