"""Printed parts: find the laser's power, or the material, from what the temperatures are to be, or were."""
