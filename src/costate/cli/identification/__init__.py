"""Commands that find numbers from measurements: of a robot from its log, of a body from its tosses."""
