"""Reports of identification: a robot from its log, and a body from its tosses."""
