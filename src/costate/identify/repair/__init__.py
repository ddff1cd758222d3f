"""What is wrong with a log, found and repaired: its clock, units and signs, the order of its joints, single wrong rows."""
