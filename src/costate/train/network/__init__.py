"""Networks of usual layers as one value, which torch, NumPy, ONNX and C compute alike."""

from costate.train.network.network import Layer, Names, Network, Scaling

__all__ = ["Layer", "Names", "Network", "Scaling"]
