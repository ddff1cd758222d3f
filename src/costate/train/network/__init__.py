"""Networks of usual layers as one value, which torch, NumPy, ONNX and C compute alike."""

from costate.train.network.graph import Graph, Step
from costate.train.network.network import Names, Network, Scaling

__all__ = ["Graph", "Names", "Network", "Scaling", "Step"]
