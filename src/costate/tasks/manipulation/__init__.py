"""Manipulation by a hand: policies that propose contacts, trained to make their proposals true, and judged in full simulation."""
