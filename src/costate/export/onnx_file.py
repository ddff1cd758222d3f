"""ONNX files: one graph, float32 in and out, any batch, with the meaning of every number in the file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from costate import __version__
from costate.core.extras import needs
from costate.export.policy import as_network
from costate.train.network import Network
from costate.train.network.formula import operations
from costate.train.network.primitives import PRIMITIVES

OPSET, IR = 17, 8
"""Versions of the format, old enough for every runtime in use."""
SAMPLES = 4096
"""Number of random inputs at which a file is checked."""
TOLERANCE = {"float64": 1e-6, "float32": 1e-5}
"""Largest difference allowed between the file and the policy, as a fraction of the range of the commands, by the precision of the
arithmetic inside. In float32 sums and the runtime's approximate tanh leave a few millionths."""

MAGNIFIED = 10.0
"""Factor of what one rounding of all weights and inputs to float32 changes, which is added: sums round many times."""
SINGLE, SINGLE_OPERATORS = {"erf"}, {"Erf"}
"""Operations that onnxruntime has in float32 only."""

Precision = Literal["float64", "float32"]


def write_onnx(policy: Any, path: str | Path, precision: Precision = "float64") -> Path:
    """Write a policy; input "measurement" (batch, inputs), output "command" (batch, outputs), float32; returns the path.

    A policy with memory has the input "memory" (batch, k) and the output "next_memory", too; the metadata "memory" has the numbers
    to begin with. The file is read back, run by onnxruntime and refused if it does not agree with the policy.

    Args:
        policy: A network, or any module of usual layers (see `as_network`).
        path: File to be written.
        precision: Precision of the arithmetic inside; "float32" for runtimes that know no other.
    """
    onnx, network = _onnx(), as_network(policy)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(_model(network, precision), str(path))
    difference, allowed = onnx_difference(network, path), _tolerance(network, precision)
    if not difference <= allowed:
        path.unlink()
        raise ValueError(
            f"onnxruntime computes other commands than the policy: they differ by {difference:.2g} of their range, "
            f"{allowed:g} is allowed; the file was removed"
        )
    return path


def _tolerance(network: Network, precision: Precision) -> float:
    """Return the largest difference allowed: more for networks that magnify the rounding of float32, if they run in it."""
    formulas = [s.options["formula"] for s in network.graph.steps if s.kind == "pointwise"]
    if precision == "float64" and not any(SINGLE & operations(formula) for formula in formulas):
        return TOLERANCE[precision]
    random = np.random.default_rng(2)

    def rounded(value: np.ndarray) -> np.ndarray:
        return value * (1 + np.finfo(np.float32).eps * random.uniform(-0.5, 0.5, value.shape))

    x, memory = _samples(network, SAMPLES // 8)
    constants = {name: rounded(value) for name, value in network.graph.constants.items()}
    other = replace(network, graph=replace(network.graph, constants=constants))
    wanted, kept = network.step(x, memory)
    found, after = other.step(rounded(x), rounded(memory))
    return TOLERANCE["float32"] + MAGNIFIED * _worst(network, found, after, wanted, kept)


def _samples(network: Network, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random inputs, and memories around the first one, float32 numbers."""
    memory = network.memory + np.random.default_rng(1).uniform(-1, 1, (count, len(network.memory)))
    return network.samples(count), memory.astype(np.float32).astype(float)


def _worst(network: Network, found: Any, after: Any, wanted: Any, kept: Any) -> float:
    """Return the largest difference of commands and memories, by the range of each command and memory."""
    size = np.maximum(np.maximum(np.abs(network.scale), np.abs(wanted).max(0)), np.finfo(float).tiny)
    worst = [np.max(np.abs(found - wanted) / size, initial=0.0)]
    worst.append(np.max(np.abs(after - kept) / np.maximum(np.abs(kept).max(0), 1.0), initial=0.0))
    return float(np.max(worst))  # not a number if there is one


def onnx_difference(policy: Any, path: str | Path, count: int = SAMPLES) -> float:
    """Return the largest difference of the file's commands, run by onnxruntime, from the policy's, by their range."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(needs("checking an ONNX file", "onnxruntime", "export")) from error
    network = as_network(policy)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    x, memory = _samples(network, count)
    given = {"measurement": x.astype(np.float32)} | (
        {"memory": memory.astype(np.float32)} if network.memory.size else {}
    )
    found, *after = session.run(None, given)
    return _worst(network, found, after[0] if after else memory, *network.step(x, memory))


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise ImportError(needs("an ONNX file", "onnx", "export")) from error
    return onnx


class _Graph:
    """A graph in the making: nodes that follow each other, and the constants they name."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype
        self.constants: dict[str, np.ndarray] = {}
        self.nodes: list[tuple[str, list[str], str, dict[str, Any]]] = []

    def add(self, operator: str, inputs: Sequence[str], out: str, **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        if operator in SINGLE_OPERATORS and self.dtype == np.float64:
            (x,) = inputs
            self.nodes.append(("Cast", [x], f"{out}.single", {"to": _onnx().TensorProto.FLOAT}))
            self.nodes.append((operator, [f"{out}.single"], f"{out}.result", attributes))
            operator, inputs, attributes = "Cast", [f"{out}.result"], {"to": _onnx().TensorProto.DOUBLE}
        self.nodes.append((operator, list(inputs), out, attributes))
        return out

    def constant(self, name: str, value: Any) -> str:
        """Keep a constant, and return its name."""
        self.constants[name] = np.ascontiguousarray(value, self.dtype).reshape(np.shape(value))
        return name

    def number(self, value: float) -> str:
        """Keep a number, and return its name."""
        return self.constant(f"number {value!r}", value)

    def integers(self, values: Sequence[int]) -> str:
        """Keep whole numbers, and return their name."""
        name = f"integers {' '.join(map(str, values))}"
        self.constants[name] = np.array(list(values), np.int64)
        return name


def _graph(n: Network, precision: Precision, inside: int, outside: int) -> _Graph:
    """Return the graph of a network, its scaling included."""
    g, wanted = _Graph(np.dtype(precision)), n.graph
    last = g.add("Cast", ["measurement"], "measurement inside", to=inside)
    if (z := n.scaling) is not None:
        top = np.minimum(z.top, np.finfo(np.float32).max)
        for operator, name, value in (("Min", "top", top), ("Sub", "middle", z.middle), ("Mul", "gain", z.gain)):
            last = g.add(operator, [last, g.constant(name, value)], f"after {name}")
    g.add("Identity", [last], wanted.inputs[0][0])
    place = 0
    if n.memory.size:
        g.add("Cast", ["memory"], "memory inside", to=inside)
    for name, size in wanted.inputs[1:]:
        g.add("Gather", ["memory inside", g.integers(range(place, place + size))], name, axis=1)
        place += size
    for name, value in wanted.constants.items():
        g.constant(name, value)
    for step in wanted.steps:
        PRIMITIVES[step.kind].onnx(step, wanted.shapes, g)
    last, *kept = wanted.outputs
    for operator, name, value in (("Mul", "scale", n.scale), ("Add", "offset", n.offset)):
        last = g.add(operator, [last, g.constant(name, value)], f"after {name}")
    g.add("Cast", [last], "command", to=outside)
    if kept:
        g.add("Cast", [g.add("Concat", kept, "memory after", axis=1)], "next_memory", to=outside)
    return g


def _model(network: Network, precision: Precision) -> Any:
    onnx = _onnx()
    helper, outside = onnx.helper, onnx.TensorProto.FLOAT
    inside = onnx.TensorProto.DOUBLE if precision == "float64" else outside
    made = _graph(network, precision, inside, outside)

    def described(sizes: dict[str, int]) -> list[Any]:
        return [helper.make_tensor_value_info(name, outside, ["batch", size]) for name, size in sizes.items() if size]

    graph = helper.make_graph(
        [helper.make_node(operator, inputs, [out], **attributes) for operator, inputs, out, attributes in made.nodes],
        "costate_policy",
        described({"measurement": len(network.inputs), "memory": len(network.memory)}),
        described({"command": len(network.outputs), "next_memory": len(network.memory)}),
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
        "memory": json.dumps(n.memory.tolist()),
        "costate": __version__,
    }
