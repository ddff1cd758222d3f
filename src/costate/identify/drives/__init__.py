"""Drives as they are: laws of friction beyond Coulomb and viscous, and torques from motor currents."""
