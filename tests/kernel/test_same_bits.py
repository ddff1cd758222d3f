"""Results and gradients are the same bits whatever the place in the batch, the batch size, the threads, the vector width."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
import torch
from tests.kernel import programs
from tests.kernel.ops.fields import test_for_each
from tests.kernel.programs import every_kind_inputs, positional, same_bits, spring_inputs
from tests.warm import run_warm
from torch import Tensor

from costate.kernel import Kernel
from costate.kernel.calls.native import NativeCode


@pytest.fixture(scope="module")
def every_kind() -> Kernel:
    """Loops that end at different times in different samples, branches, tables: all that lane-mates could disturb."""
    return programs.every_kind()


def with_gradients(kernel: Kernel, inputs: list[Tensor]) -> list[Tensor]:
    """Outputs, gradients of a weighted sum, and tangents."""
    leaves = [t.detach().clone().requires_grad_() for t in inputs]
    outs = kernel.apply(leaves)
    seeds = [(torch.arange(o[0].numel()).reshape(o[0].shape) % 7 - 2.5).to(o.dtype).expand(o.shape) for o in outs]
    grads = torch.autograd.grad(outs, leaves, seeds)
    dots = torch.func.jvp(positional(kernel), tuple(inputs), tuple(torch.cos(t) for t in inputs))[1]
    return [*(o.detach() for o in outs), *grads, *dots]


def inputs_of(dtype: torch.dtype, batch: int = 70) -> list[Tensor]:
    inputs = [t.to(dtype) for t in every_kind_inputs(batch)]
    inputs[0][batch // 3, 1] = torch.nan  # a sample that is lost must not take others with it
    inputs[0][batch // 2] *= 30  # and one that loops longest
    return inputs


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_place_in_the_batch(every_kind: Kernel, dtype: torch.dtype) -> None:
    inputs = inputs_of(dtype)
    whole = with_gradients(every_kind, inputs)
    for seed in range(3):
        order = torch.from_numpy(np.random.default_rng(seed).permutation(70))
        shuffled = with_gradients(every_kind, [t[order] for t in inputs])
        for a, b in zip(whole, shuffled, strict=True):
            assert same_bits(a[order], b)


def test_shortest_vectors(every_kind: Kernel) -> None:
    inputs = inputs_of(torch.float64, 5)
    assert every_kind.narrow is every_kind.narrow
    for a, b in zip(every_kind.apply(inputs), every_kind.narrow.apply(inputs), strict=True):
        assert same_bits(a, b)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_batch_size(every_kind: Kernel, dtype: torch.dtype) -> None:
    """Every size from 1 to 70, cut out at a moving start, so that each sample meets all remainders and lane-mates."""
    inputs = inputs_of(dtype)
    whole = with_gradients(every_kind, inputs)
    for size in range(1, 71):
        start = (11 * size) % (71 - size)
        part = slice(start, start + size)
        for a, b in zip(whole, with_gradients(every_kind, [t[part] for t in inputs]), strict=True):
            assert same_bits(a[part], b), f"{size} samples from {start}"


def test_leading_dimensions_do_not_matter(every_kind: Kernel) -> None:
    inputs = inputs_of(torch.float64, 60)
    flat = every_kind.apply(inputs)
    folded = every_kind.apply([t.reshape(3, 4, 5, *t.shape[1:]) for t in inputs])
    turned = every_kind.apply([t.reshape(6, 10, *t.shape[1:]).transpose(0, 1) for t in inputs])
    for a, b, c in zip(flat, folded, turned, strict=True):
        assert same_bits(a, b.reshape(a.shape))
        assert same_bits(a, c.transpose(0, 1).reshape(a.shape))


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_thread_count(dtype: torch.dtype, threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One, two and five threads; gradients of shared inputs, which are sums over the batch, included."""
    monkeypatch.setattr("costate.kernel.calls.native.THREAD_GAIN_OPS", 0)  # share even small batches
    used: set[int] = set()
    original = NativeCode._range

    def spy(self: NativeCode, begin: int, *rest) -> None:
        used.add(begin)
        original(self, begin, *rest)

    monkeypatch.setattr(NativeCode, "_range", spy)
    k = programs.spring()
    x = spring_inputs(1000)[0].to(dtype)
    p, M = (t.to(dtype) for t in spring_inputs()[1:])
    results = []
    for n in (1, 2, 5):
        torch.set_num_threads(n)
        leaves = [t.clone().requires_grad_() for t in (x, p, M)]
        outs = k.apply(leaves)
        results.append([*(o.detach() for o in outs), *torch.autograd.grad([o.sum() for o in outs], leaves)])
        assert (len(used) > 1) == (n > 1)  # it did run in pieces
        used.clear()
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert same_bits(a, b)


def test_small_batches_stay_on_the_calling_thread(threads: None) -> None:
    torch.set_num_threads(2)
    code = programs.spring().code()
    assert code.threads_for(1) == code.threads_for(64) == 1
    assert code.threads_for(10_000_000) == 2
    torch.set_num_threads(1)
    assert code.threads_for(10_000_000) == 1


# --- vector widths ----------------------------------------------------------------------------------------------------


def digests() -> str:
    """Digests of results and gradients, shared sums included, of programs with every op and every kind of stage."""
    k, every = programs.every_kind(), every_op()
    lines = []
    for dtype in (torch.float64, torch.float32):
        inputs = [t.to(dtype) for t in every_kind_inputs(37)]
        found = with_gradients(k, inputs)
        leaf = inputs[2][0].clone().requires_grad_()  # shared: its gradient is a sum over the batch
        out = k(x=inputs[0], u=inputs[1], k=leaf)
        found += torch.autograd.grad(out.rooted.sum() + out.states.sum(), leaf)
        x = torch.linspace(-3, 3, 37, dtype=dtype)[:, None]
        found += every(x=x, y=x.flip(0))
        net = [t.to(dtype).requires_grad_() for t in test_for_each.inputs()]
        outs = test_for_each.program().apply([*net, torch.tensor([3.0, 41.0], dtype=dtype)])
        found += [*(o.detach() for o in outs), *torch.autograd.grad([o.sum() for o in outs], net)]
        lines += [hashlib.sha256(t.contiguous().numpy().tobytes()).hexdigest() for t in found]
    return "\n".join(lines)


def every_op() -> Kernel:
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    outputs = [f(x) for f in (ca.sin, ca.cos, ca.tan, ca.exp, ca.tanh, ca.sinh, ca.atan, ca.erf, ca.asinh, ca.expm1)]
    outputs += [ca.log(x**2 + 0.1), ca.atan2(x, y), ca.fmin(x, y), (x**2 + 0.5) ** y, ca.hypot(x, y), ca.fmod(x, y)]
    return Kernel("ops", {"x": x, "y": y}, {"z": ca.vertcat(*outputs)})


def run_with(width: int, level: int, cache: Path) -> tuple[str, str]:
    """(lanes of a float64 vector, digests) from a process of its own."""
    program = cache / "program.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from tests.kernel import test_same_bits as t\nfrom costate.kernel.machine.target import host\n"
        "print(host().lanes('f64'))\nprint(t.digests())"
    )
    chosen = {"COSTATE_VECTOR_BYTES": str(width), "COSTATE_CODE_LEVEL": str(level), "COSTATE_CACHE": str(cache)}
    done = run_warm([str(program)], cache, chosen)
    assert done.returncode == 0, done.stderr
    lanes, _, rest = done.stdout.partition("\n")
    return lanes, rest.strip()


@pytest.mark.slow
def test_vector_width_and_level_of_the_code_generator(tmp_path: Path) -> None:
    """Registers of 16, 32 and 64 bytes: 2, 4 and 8 samples of float64 at a time. LLVM splits those the CPU lacks.

    At two levels of LLVM's code generator: other tests than those of the compiler use the lower one (tests/conftest.py).
    """
    results = [run_with(width, level, tmp_path) for width, level in ((16, 1), (32, 0), (64, 0))]
    assert [lanes for lanes, _ in results] == ["2", "4", "8"]
    assert results[0][1].count("\n") > 20
    names = results[0][1].splitlines()
    for _, other in results[1:]:
        differing = [k for k, (a, b) in enumerate(zip(names, other.splitlines(), strict=True)) if a != b]
        assert not differing
