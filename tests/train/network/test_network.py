"""One network value: torch, NumPy, ONNX and C give the same numbers for every layer there is, and every forward."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.train.network.modules import INPUTS, KINDS, OUTPUTS, WHOLE, module

from costate.export import write_c_header, write_onnx
from costate.train.network import Network, Scaling

COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
NAMES = tuple((f"number {k}", "1") for k in range(INPUTS))
OFFSET, SCALE = np.array([0.1, 0.0, -1.0]), np.array([1.0, 2.0, 3.0])


@cache
def plain(kind: str) -> Network:
    return Network.of(module(kind), NAMES, NAMES[:OUTPUTS], OFFSET, SCALE, about="a test")


def network(kind: str) -> Network:
    middle, gain, top = np.linspace(-1, 1, INPUTS), np.array([1.0, 0.0, 2.0, 0.5, 0.1]), np.full(INPUTS, np.inf)
    top[-1] = 3.0
    return plain(kind).measured(NAMES, Scaling(middle, gain, top), "a test")


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_computes_what_torch_computes(kind: str) -> None:
    n, x = plain(kind), np.random.default_rng(1).normal(size=(28, INPUTS))
    memory = np.broadcast_to(n.memory, (28, len(n.memory)))
    parts = np.split(memory, np.cumsum(n.parts)[:-1], axis=-1) if n.parts else []
    with torch.no_grad():
        found = module(kind).double()(*(torch.from_numpy(np.array(t)) for t in (x, *parts)))
    wanted, *after = found if isinstance(found, tuple) else (found,)
    action, kept = n.step(x.reshape(4, 7, INPUTS), n.memory)
    # Sums of a few products of order one: some 1e-15 each.
    np.testing.assert_allclose(action.reshape(28, -1), wanted.numpy() * SCALE + OFFSET, rtol=0, atol=1e-12)
    if after:
        np.testing.assert_allclose(kept.reshape(28, -1), torch.cat(after, -1).numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_onnxruntime_gives_the_same(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    for precision in ("float64", "float32"):
        write_onnx(network(kind), tmp_path / f"{precision}.onnx", precision)  # refused unless it agrees


@pytest.mark.skipif(COMPILER is None, reason="no C compiler: CC names one")
@pytest.mark.parametrize(("real", "number", "tolerance"), [("float", np.float32, 4e-6), ("double", np.float64, 1e-13)])
def test_compiled_headers_give_the_same(real: str, number: type, tolerance: float, tmp_path: Path) -> None:
    """All kinds in one library: a header each, in a function of its own."""
    lines = []
    for k, kind in enumerate(KINDS):
        write_c_header(network(kind), tmp_path / f"policy{k}.h")
        own = ("costate_policy", "costate_policy_begin", "COSTATE_INPUTS", "COSTATE_OUTPUTS", "COSTATE_MEMORY")
        lines += [f"#define {name} {name}{k}" for name in own]
        lines += ["#undef COSTATE_POLICY_H", f'#include "policy{k}.h"', *(f"#undef {name}" for name in own)]
        head = f"void run{k}(const COSTATE_REAL *x, COSTATE_REAL *m, COSTATE_REAL *y)"
        call = (
            f"costate_policy_begin{k}(m); costate_policy{k}(x, m, y)"
            if network(kind).parts
            else f"(void)m; costate_policy{k}(x, y)"
        )
        lines += [f"{head};", f"{head} {{ {call}; }}"]
    (tmp_path / "all.c").write_text("\n".join(lines) + "\n")
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    done = subprocess.run(
        [str(COMPILER), *flags, f"-DCOSTATE_REAL={real}", "-o", "all.so", "all.c", "-lm"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(tmp_path / "all.so"))
    for k, kind in enumerate(KINDS):
        made = network(kind)
        for x in made.samples(50):
            given = [
                np.ascontiguousarray(x, number),
                np.zeros(max(len(made.memory), 1), number),
                np.zeros(OUTPUTS, number),
            ]
            library[f"run{k}"](*(a.ctypes.data_as(ctypes.c_void_p) for a in given))
            wanted, kept = made.step(given[0].astype(float), made.memory.astype(number).astype(float))
            assert (np.abs(given[2] - wanted) / (1 + np.abs(wanted))).max() < tolerance, kind
            assert (np.abs(given[1] - (kept if kept.size else 0)) < tolerance).all(), kind


@pytest.mark.parametrize("kind", ["elu 0.5", *WHOLE])
def test_files_hold_the_network(kind: str) -> None:
    made = plain(kind)
    again = Network.read(made.tensors(), json.loads(json.dumps(made.note())))
    x = made.samples(20)
    np.testing.assert_array_equal(again(x), made(x))
    assert again.inputs == made.inputs and again.outputs == made.outputs


def test_not_a_number_stays_visible(tmp_path: Path) -> None:
    x = np.full((1, INPUTS), np.nan)
    for kind in ("relu", "hardtanh", "leaky_relu", "softmax"):
        assert np.isnan(plain(kind)(x)).all(), kind
