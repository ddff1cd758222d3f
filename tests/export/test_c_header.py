"""The C header: compiled by the system's compiler with every warning an error, it gives the policy's commands."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from costate.export import Network, network_of, write_c_header
from costate.tasks.insertion import Insertion, Policy
from costate.train.network import Graph, Step

COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-pedantic")
PROGRAM = """
#include "costate_policy.h"
void run(const COSTATE_REAL *in, COSTATE_REAL *out, long count);
void run(const COSTATE_REAL *in, COSTATE_REAL *out, long count)
{
  for (; count > 0; --count, in += COSTATE_INPUTS, out += COSTATE_OUTPUTS) costate_policy(in, out);
}
"""


@pytest.fixture(scope="module")
def network(policy: Policy, task: Insertion) -> Network:
    return network_of(policy, task)


@pytest.fixture(scope="module")
def folder(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("header")
    write_c_header(network, folder / "costate_policy.h")
    (folder / "program.c").write_text(PROGRAM)
    return folder


def compiled(folder: Path, real: str) -> ctypes.CDLL:
    if COMPILER is None:
        pytest.skip("no C compiler: CC names one")
    library = folder / f"{real}.so"
    options = ["-std=c99", *FLAGS, f"-DCOSTATE_REAL={real}", "-shared", "-fPIC", "-o", library, "program.c", "-lm"]
    done = subprocess.run([COMPILER, *options], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


# Sums of 256 products: float32 keeps a millionth of the range; double agrees to its rounding.
@pytest.mark.parametrize(("real", "kind", "tolerance"), [("float", np.float32, 1e-6), ("double", np.float64, 1e-13)])
def test_compiled_header_gives_the_commands_of_the_policy(
    folder: Path, network: Network, real: str, kind: type, tolerance: float
) -> None:
    x = np.ascontiguousarray(network.samples(2000), kind)
    x[::2, -1] = np.arange(1000) % 45  # steps before and after the horizon
    out = np.zeros((2000, 6), kind)
    pointer = ctypes.c_void_p
    compiled(folder, real).run(x.ctypes.data_as(pointer), out.ctypes.data_as(pointer), ctypes.c_long(2000))
    wanted = network(x.astype(float))
    assert (np.abs(out - wanted) / network.scale).max() < tolerance
    assert np.abs(wanted / network.scale).max() > 0.9, "commands should reach the limits"


def test_header_is_also_cpp(folder: Path) -> None:
    if (compiler := shutil.which("c++") or shutil.which("g++")) is None:
        pytest.skip("no C++ compiler")
    (folder / "program.cpp").write_text(PROGRAM)
    done = subprocess.run(
        [compiler, "-std=c++11", *FLAGS, "-c", "program.cpp"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_names_stay_inside_of_comments(tmp_path: Path) -> None:
    """A header with names that would end its comment, or put lines behind it, compiles."""
    names = ["a*/ int x; /*", "b\n#error x", "c*\\\n/ int y;", '"</script>$x$ é', "*/*/", "d??/\udcff"]
    step = Step("linear", ("x0", "*/ weight", "\n#error"), "v0", (1,))
    constants = {"*/ weight": np.ones((1, len(names))), "\n#error": np.zeros(1)}
    graph = Graph((("x0", len(names)),), (step,), ("v0",), constants)
    hostile = Network(
        graph, tuple((n, "m") for n in names), (("*/", "*/"),), np.zeros(1), np.ones(1), about="*/ #error"
    )
    write_c_header(hostile, tmp_path / "costate_policy.h")
    (tmp_path / "program.c").write_text(PROGRAM)
    compiled(tmp_path, "double")
