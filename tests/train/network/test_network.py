"""One network value: torch, NumPy, ONNX and C give the same numbers for every layer there is."""

from __future__ import annotations

import copy
import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from costate.export import write_c_header, write_onnx
from costate.export.onnx_file import TOLERANCE, onnx_difference
from costate.train.network import Network, Scaling
from costate.train.network.formula import ACTIVATIONS

COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
INPUTS, HIDDEN, OUTPUTS = 5, 12, 3
KINDS: dict[str, nn.Module] = {kind: row.module() for kind, row in ACTIVATIONS.items()} | {
    "elu 0.5": nn.ELU(0.5),
    "leaky_relu 0.2": nn.LeakyReLU(0.2),
    "norm": nn.LayerNorm(HIDDEN),
    "dropout": nn.Dropout(),
}


def module(kind: str) -> nn.Sequential:
    """A nested chain, with weights of order one and one layer without bias."""
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(INPUTS, HIDDEN, bias=False), copy.deepcopy(KINDS[kind]))
    chain = nn.Sequential(inner, nn.Linear(HIDDEN, OUTPUTS), nn.Tanh())
    with torch.no_grad():
        for parameter in chain.parameters():
            parameter.normal_(0.0, 0.7)
    return chain.eval()


def network(kind: str, scaled: bool = True) -> Network:
    names = tuple((f"number {k}", "1") for k in range(INPUTS))
    made = Network.of(module(kind), names, names[:OUTPUTS], [0.1, 0.0, -1.0], [1.0, 2.0, 3.0], about="a test")
    middle, gain, top = np.linspace(-1, 1, INPUTS), np.array([1.0, 0.0, 2.0, 0.5, 0.1]), np.full(INPUTS, np.inf)
    top[-1] = 3.0
    return made.measured(names, Scaling(middle, gain, top), "a test") if scaled else made


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_computes_what_torch_computes(kind: str) -> None:
    x = np.random.default_rng(1).normal(size=(4, 7, INPUTS))
    with torch.no_grad():
        wanted = module(kind).double()(torch.from_numpy(x)).numpy() * [1.0, 2.0, 3.0] + [0.1, 0.0, -1.0]
    np.testing.assert_allclose(network(kind, scaled=False)(x), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_back_in_torch_it_is_the_same(kind: str) -> None:
    x = torch.randn(9, INPUTS, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(network(kind).module()(x), module(kind)(x), rtol=0, atol=1e-6)  # of float32


@pytest.mark.parametrize("kind", KINDS)
def test_onnxruntime_gives_the_same(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    for precision in ("float64", "float32"):
        path = write_onnx(network(kind), tmp_path / f"{precision}.onnx", precision)  # checked inside, too
        assert onnx_difference(network(kind), path) < TOLERANCE[precision]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler: CC names one")
@pytest.mark.parametrize(("real", "number", "tolerance"), [("float", np.float32, 2e-6), ("double", np.float64, 1e-13)])
def test_compiled_headers_give_the_same(real: str, number: type, tolerance: float, tmp_path: Path) -> None:
    """All kinds in one library: a header each, in a function of its own."""
    lines = []
    for k, kind in enumerate(KINDS):
        write_c_header(network(kind), tmp_path / f"policy{k}.h")
        lines += [f"#define costate_policy policy{k}", "#undef COSTATE_POLICY_H", f"#define COSTATE_INPUTS I{k}"]
        lines += [f"#define COSTATE_OUTPUTS O{k}", f"#define COSTATE_WIDEST W{k}", f'#include "policy{k}.h"']
        lines += [
            f"#undef {name}" for name in ("costate_policy", "COSTATE_INPUTS", "COSTATE_OUTPUTS", "COSTATE_WIDEST")
        ]
        lines += [f"void run{k}(const COSTATE_REAL *x, COSTATE_REAL *y);"]
        lines += [f"void run{k}(const COSTATE_REAL *x, COSTATE_REAL *y) {{ policy{k}(x, y); }}"]
    (tmp_path / "all.c").write_text("\n".join(lines) + "\n")
    flags = [
        "-std=c99",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        f"-DCOSTATE_REAL={real}",
        "-shared",
        "-fPIC",
    ]
    done = subprocess.run(
        [str(COMPILER), *flags, "-o", "all.so", "all.c", "-lm"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(tmp_path / "all.so"))
    for k, kind in enumerate(KINDS):
        made = network(kind)
        for x in made.samples(200):
            given, found = np.ascontiguousarray(x, number), np.zeros(OUTPUTS, number)
            library[f"run{k}"](given.ctypes.data_as(ctypes.c_void_p), found.ctypes.data_as(ctypes.c_void_p))
            assert (np.abs(found - made(given.astype(float))) / made.scale).max() < tolerance, kind


def test_files_hold_the_network() -> None:
    made = network("elu 0.5", scaled=False)
    again = Network.read(made.tensors(), made.note())
    x = made.samples(20)
    np.testing.assert_array_equal(again(x), made(x))
    assert again.inputs == made.inputs and again.outputs == made.outputs


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (nn.Sequential(nn.Conv1d(2, 3, 1)), "Conv1d"),
        (nn.Bilinear(2, 2, 1), "layers()"),
        (nn.Sequential(nn.GELU()), "GELU"),
    ],
)
def test_other_layers_are_refused_by_name(wrong: nn.Module, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Network.of(wrong, (), (), [], [])
