"""ONNX files: one graph, float32 in and out, any batch, with the meaning of every number in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np

from costate import __version__
from costate.export.network import Network

OPSET, IR = 17, 8
"""Old enough for every runtime in use."""
SAMPLES = 4096
TOLERANCE = {"float64": 1e-6, "float32": 1e-5}
"""Largest difference allowed between the file and the policy, as a fraction of the range of the commands, by the precision of the
arithmetic inside. In float32 sums and the runtime's approximate tanh leave a few millionths."""

Precision = Literal["float64", "float32"]


def write_onnx(network: Network, path: str | Path, precision: Precision = "float64") -> Path:
    """Write the network; input "measurement" (batch, inputs), output "command" (batch, outputs), float32; returns the path.

    The file is read back, run by onnxruntime and refused if it does not agree with the network.

    precision: Of the arithmetic inside; "float32" for runtimes that know no other.
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
    """Largest difference of the file's commands, run by onnxruntime, from the network's, as a fraction of their range."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError("checking an ONNX file needs onnxruntime: pip install 'costate[export]'") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    x = network.samples(count)
    (found,) = session.run(["command"], {"measurement": x.astype(np.float32)})
    return float(np.max(np.abs(found - network(x)) / network.scale))


def _onnx():
    try:
        import onnx
    except ImportError as error:
        raise ImportError("an ONNX file needs onnx: pip install 'costate[export]'") from error
    return onnx


def _model(network: Network, precision: Precision):
    onnx = _onnx()
    helper, outside = onnx.helper, onnx.TensorProto.FLOAT
    inside = onnx.TensorProto.DOUBLE if precision == "float64" else outside
    casts = {"measurement_inside": inside, "command": outside}
    nodes = [
        helper.make_node(op, names, [out], **(attributes | ({"to": casts[out]} if op == "Cast" else {})))
        for op, names, out, attributes in NODES
    ]
    constants = _constants(network, np.dtype(precision))
    graph = helper.make_graph(
        nodes,
        "costate_policy",
        [helper.make_tensor_value_info("measurement", outside, ["batch", len(network.gain)])],
        [helper.make_tensor_value_info("command", outside, ["batch", len(network.scale)])],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
        doc_string=network.about,
    )
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(
        graph, opset_imports=opset, ir_version=IR, producer_name="costate", producer_version=__version__
    )
    helper.set_model_props(model, _notes(network))
    onnx.checker.check_model(model, full_check=True)
    return model


# Operation, inputs, output, attributes.
NODES = (
    ("Cast", ["measurement"], "measurement_inside", {}),
    ("Min", ["measurement_inside", "top"], "bounded", {}),
    ("Sub", ["bounded", "middle"], "centred", {}),
    ("Mul", ["centred", "gain"], "observation", {}),
    ("Gemm", ["observation", "W1", "b1"], "inner", {"transB": 1}),
    ("Tanh", ["inner"], "hidden", {}),
    ("Gemm", ["hidden", "W2", "b2"], "outer", {"transB": 1}),
    ("Tanh", ["outer"], "action", {}),
    ("Mul", ["action", "scale"], "scaled", {}),
    ("Add", ["scaled", "offset"], "command_inside", {}),
    ("Cast", ["command_inside"], "command", {}),
)


def _constants(n: Network, dtype: np.dtype) -> dict[str, np.ndarray]:
    top = np.minimum(n.top, np.finfo(np.float32).max)
    named = {"top": top, "middle": n.middle, "gain": n.gain, "W1": n.W1, "b1": n.b1, "W2": n.W2, "b2": n.b2}
    named |= {"scale": n.scale, "offset": n.offset}
    return {name: np.ascontiguousarray(value, dtype) for name, value in named.items()}


def _notes(n: Network) -> dict[str, str]:
    """Metadata: what goes in and comes out, as JSON."""
    rows = zip(n.inputs, n.middle, n.gain, strict=True)
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
