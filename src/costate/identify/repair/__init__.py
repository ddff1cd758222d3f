"""Repair of logs: their clock, units and signs, the order of their joints, single wrong rows."""
