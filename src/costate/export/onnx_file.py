"""ONNX files: one graph, float32 in and out, any batch, with the meaning of every number in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np

from costate import __version__
from costate.core.extras import needs
from costate.train.network import Layer, Network
from costate.train.network.formula import ACTIVATIONS, Node, in_onnx

OPSET, IR = 17, 8
"""Versions of the format, old enough for every runtime in use."""
SAMPLES = 4096
"""Number of random inputs at which a file is checked."""
TOLERANCE = {"float64": 1e-6, "float32": 1e-5}
"""Largest difference allowed between the file and the policy, as a fraction of the range of the commands, by the precision of the
arithmetic inside. In float32 sums and the runtime's approximate tanh leave a few millionths."""

Precision = Literal["float64", "float32"]


def write_onnx(network: Network, path: str | Path, precision: Precision = "float64") -> Path:
    """Write the network; input "measurement" (batch, inputs), output "command" (batch, outputs), float32; returns the path.

    The file is read back, run by onnxruntime and refused if it does not agree with the network.

    precision: Precision of the arithmetic inside; "float32" for runtimes that know no other.
    """
    onnx = _onnx()
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(_model(network, precision), str(path))
    difference = onnx_difference(network, path)
    if not difference <= TOLERANCE[precision]:
        path.unlink()
        raise ValueError(
            f"onnxruntime computes other commands than the policy: they differ by {difference:.2g} of their range, "
            f"{TOLERANCE[precision]:g} is allowed; the file was removed"
        )
    return path


def onnx_difference(network: Network, path: str | Path, count: int = SAMPLES) -> float:
    """Return the largest difference of the file's commands, run by onnxruntime, from the network's, by their range."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(needs("checking an ONNX file", "onnxruntime", "export")) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    x = network.samples(count)
    (found,) = session.run(["command"], {"measurement": x.astype(np.float32)})
    return float(np.max(np.abs(found - network(x)) / network.scale))


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise ImportError(needs("an ONNX file", "onnx", "export")) from error
    return onnx


class _Graph:
    """A graph in the making: nodes that follow each other, and the constants they name."""

    def __init__(self, dtype: np.dtype):
        self.dtype, self.constants = dtype, {}
        self.nodes: list[tuple[str, list[str], str, dict[str, Any]]] = []
        self.last = "measurement"

    def constant(self, name: str, value: Any) -> str:
        """Keep a constant, and return its name."""
        self.constants[name] = np.ascontiguousarray(value, self.dtype)
        return name

    def add(self, operator: str, inputs: list[str], out: str, **attributes: Any) -> None:
        """Add a node; what follows takes its output."""
        self.nodes.append((operator, inputs, out, attributes))
        self.last = out

    def layer(self, number: int, layer: Layer) -> None:
        """Add the nodes of a layer."""
        out = f"{layer.kind}{number}"
        if layer.kind in ACTIVATIONS:
            nodes: list[Node] = in_onnx(ACTIVATIONS[layer.kind].formula, self.last, out, layer.number, self._number)
            for operator, inputs, name in nodes:
                self.add(operator, inputs, name)
            return
        weights = [self.constant(f"{out}.{part}", getattr(layer, part)) for part in ("weight", "bias")]
        if layer.kind == "linear":
            self.add("Gemm", [self.last, *weights], out, transB=1)
        else:
            self.add("LayerNormalization", [self.last, *weights], out, epsilon=layer.number)

    def _number(self, value: float) -> str:
        return self.constant(f"number {value!r}", value)


def _graph(n: Network, precision: Precision, inside: int, outside: int) -> _Graph:
    """Return the graph of a network, its scaling included."""
    graph = _Graph(np.dtype(precision))
    graph.add("Cast", [graph.last], "measurement_inside", to=inside)
    if (z := n.scaling) is not None:
        top = np.minimum(z.top, np.finfo(np.float32).max)
        for operator, name, value in (("Min", "top", top), ("Sub", "middle", z.middle), ("Mul", "gain", z.gain)):
            graph.add(operator, [graph.last, graph.constant(name, value)], f"after_{name}")
    for number, layer in enumerate(n.layers):
        graph.layer(number, layer)
    for operator, name, value in (("Mul", "scale", n.scale), ("Add", "offset", n.offset)):
        graph.add(operator, [graph.last, graph.constant(name, value)], f"after_{name}")
    graph.add("Cast", [graph.last], "command", to=outside)
    return graph


def _model(network: Network, precision: Precision) -> Any:
    onnx = _onnx()
    helper, outside = onnx.helper, onnx.TensorProto.FLOAT
    inside = onnx.TensorProto.DOUBLE if precision == "float64" else outside
    made = _graph(network, precision, inside, outside)
    graph = helper.make_graph(
        [helper.make_node(operator, inputs, [out], **attributes) for operator, inputs, out, attributes in made.nodes],
        "costate_policy",
        [helper.make_tensor_value_info("measurement", outside, ["batch", len(network.inputs)])],
        [helper.make_tensor_value_info("command", outside, ["batch", len(network.outputs)])],
        [onnx.numpy_helper.from_array(value, name) for name, value in made.constants.items()],
        doc_string=network.about,
    )
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(
        graph, opset_imports=opset, ir_version=IR, producer_name="costate", producer_version=__version__
    )
    helper.set_model_props(model, _notes(network))
    onnx.checker.check_model(model, full_check=True)
    return model


def _notes(n: Network) -> dict[str, str]:
    """Return the metadata: what goes in and comes out, as JSON."""
    size, z = len(n.inputs), n.scaling
    middle, gain = (np.zeros(size), np.ones(size)) if z is None else (z.middle, z.gain)
    rows = zip(n.inputs, middle, gain, strict=True)
    inputs = [{"name": name, "unit": unit, "middle": m, "gain": g} for (name, unit), m, g in rows]
    results = zip(n.outputs, n.offset, n.scale, strict=True)
    outputs = [{"name": name, "unit": unit, "offset": o, "scale": s} for (name, unit), o, s in results]
    return {
        "about": n.about,
        "measurement": json.dumps(inputs),
        "command": json.dumps(outputs),
        "normalisation": "inside the graph: observation = (measurement - middle) * gain; command = offset + scale * action",
        "costate": __version__,
    }
