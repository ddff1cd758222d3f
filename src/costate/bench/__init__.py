"""Costate beside other libraries: each in an environment of its own, measured in turns in one run."""
