"""Guidance: a controller of the insertion that follows from kinematics, its observer, and the network that corrects it."""
