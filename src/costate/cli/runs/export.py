"""`costate export RUN`: a trained policy as an ONNX file and a C header."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True)
class Options:
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The folder that `costate train` wrote."""
    onnx: bool = True
    """Write policy.onnx, and check it with onnxruntime."""
    header: bool = True
    """Write costate_policy.h: weights and forward pass in C99, without dependencies."""
    precision: Literal["float64", "float32"] = "float64"
    """Of the arithmetic inside the ONNX file; what goes in and comes out is float32."""
    out: Path | None = None
    """Folder for the files; default: the run's."""


def run(options: Options) -> None:
    from costate.export import network_of, onnx_difference, write_c_header, write_onnx
    from costate.train.run import Run

    if not (options.onnx or options.header):
        raise ValueError("nothing to export: leave out --no-onnx or --no-header")
    found = Run.open(options.run)
    network, out = network_of(found.policy, found.task), options.out or options.run
    if options.onnx:
        path = write_onnx(network, out / "policy.onnx", options.precision)
        worst = onnx_difference(network, path)
        print(f"{path}  (onnxruntime gives the policy's commands to {worst:.1e} of their range)")
    if options.header:
        print(write_c_header(network, out / "costate_policy.h"))
    print(
        f"in:  {len(network.inputs)} numbers: joint positions [rad] 6, joint velocities [rad/s] 6, socket position [m] 3,"
    )
    print("     socket velocity [m/s] 3, control steps since the start 1")
    print(f"out: {len(network.outputs)} joint commands [{network.outputs[0][1]}]")
