"""Plans: calls that take the short way give what the long way gives, whatever came before."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from tests.kernel import programs
from tests.kernel.programs import same_bits, spring_inputs
from torch import Tensor

from costate.kernel import Kernel
from costate.kernel.calls import plan as plans
from costate.kernel.calls.quick import REMEMBERED


@pytest.fixture(scope="module")
def spring() -> Kernel:
    return programs.spring()


def expected(kernel: Kernel, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Outputs by the long way."""
    return kernel._general.run([t.detach() for t in tensors], None)


def variants() -> dict[str, Sequence[Tensor]]:
    """The same kernel with other batches, types, strides, and tensors of other kinds."""
    x, p, M = spring_inputs(1)
    return {
        "one": [x, p, M],
        "no batch": spring_inputs(),
        "many": spring_inputs(100, seed=1),
        "float32": [t.float() for t in (x, p, M)],
        "asks for gradients": [x.clone().requires_grad_(), p, M],
        "a parameter": [x, torch.nn.Parameter(p), M],
        "negated lazily": [torch._neg_view(-x), p, M],  # pyright: ignore[reportPrivateImportUsage]
        "transposed": [x.t().contiguous().t(), p, M.mT.contiguous().mT],
        "shared": [spring_inputs(5)[0], p[0], M[0]],
    }


def test_calls_in_any_order(spring: Kernel) -> None:
    """Every kind of call after every other, with gradients, without and in inference mode."""
    given = variants()
    for first in given.values():
        for name, tensors in given.items():
            spring.apply(first)
            for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
                with mode():
                    for _ in range(2):  # the second call has a plan
                        found = spring.apply(tensors)
                        for a, b in zip(found, expected(spring, tensors), strict=True):
                            assert same_bits(a.detach(), b), name
                        recorded = mode is torch.enable_grad and any(t.requires_grad for t in tensors)
                        assert all(a.requires_grad == recorded for a in found), name


def test_plans_are_found_again(spring: Kernel) -> None:
    """Calls that alternate between two batches make two plans, not one for every call."""
    one, many = spring_inputs(1), spring_inputs(64)
    spring.apply(one)
    first = spring._quick.plan
    spring.apply(many)
    assert spring._quick.plan is not first
    spring.apply(one)
    assert spring._quick.plan is first and len(spring._quick.plans) <= REMEMBERED


def test_many_shapes_are_not_kept_for_ever(spring: Kernel) -> None:
    for n in range(1, REMEMBERED + 10):
        spring.apply(spring_inputs(n))
    assert len(spring._quick.plans) <= REMEMBERED


@pytest.mark.parametrize("batch", [(), (1,), (7,), (3, 2)])
def test_gradients_of_planned_calls(spring: Kernel, batch: tuple[int, ...]) -> None:
    """The same bits as under torch.func, which makes no plans: of all inputs, of some, of some outputs, again, and of gradients."""
    tensors = spring_inputs(*batch)
    seeds = [torch.randn_like(o) for o in spring.apply(tensors)]
    pull: Any = torch.func.vjp(lambda *x: tuple(spring.apply(x)), *tensors)[1]
    every = pull(tuple(seeds))
    for wrt in ((0, 1, 2), (1,), (0, 2)):
        leaves = [t.clone().requires_grad_(k in wrt) for k, t in enumerate(tensors)]
        for _ in range(2):
            outs = spring.apply(leaves)
            for _ in range(2):
                grads = torch.autograd.grad(outs, [leaves[k] for k in wrt], seeds, retain_graph=True)
                for g, k in zip(grads, wrt, strict=True):
                    assert same_bits(g, every[k])
    first_only = pull((seeds[0], torch.zeros_like(seeds[1]), torch.zeros_like(seeds[2])))
    leaves = [t.clone().requires_grad_() for t in tensors]
    for g, e in zip(torch.autograd.grad(spring.apply(leaves)[0], leaves, seeds[0]), first_only, strict=True):
        torch.testing.assert_close(g, e, rtol=1e-14, atol=1e-14)
    torch.autograd.gradgradcheck(lambda *x: tuple(spring.apply(x)), leaves)


def test_transforms_after_planned_calls(spring: Kernel) -> None:
    """A plan does not make torch.func, forward mode or mapped gradients miss anything."""
    tensors = spring_inputs(1)
    leaves = [t.clone().requires_grad_() for t in tensors]
    dots = [torch.randn_like(t) for t in tensors]
    pushed: Any = torch.func.jvp(lambda *x: tuple(spring.apply(x)), tuple(tensors), tuple(dots))[1]
    for inputs in (tensors, leaves):
        spring.apply(inputs)
        with torch.autograd.forward_ad.dual_level():
            duals = [torch.autograd.forward_ad.make_dual(t, d) for t, d in zip(inputs, dots, strict=True)]
            for o, e in zip(spring.apply(duals), pushed, strict=True):
                tangent = torch.autograd.forward_ad.unpack_dual(o).tangent
                assert tangent is not None and same_bits(tangent.detach(), e)
    mapped = torch.func.vmap(lambda x: spring.apply([x, tensors[1][0], tensors[2][0]])[0])(tensors[0])
    assert same_bits(mapped, spring.apply(tensors)[0])
    out = spring.apply(leaves)[0]
    rows = torch.eye(out.numel(), dtype=out.dtype).reshape(-1, *out.shape)
    at_once = torch.func.vmap(lambda row: torch.autograd.grad(out, leaves, row, retain_graph=True))(rows)
    for row, *grads in zip(rows, *at_once, strict=True):
        for g, e in zip(grads, torch.autograd.grad(out, leaves, row, retain_graph=True), strict=True):
            torch.testing.assert_close(g, e, rtol=1e-14, atol=1e-14)


def test_threads_share_a_plan(spring: Kernel) -> None:
    """Threads that call at the same time do not use the same arguments."""
    cases = [spring_inputs(1, seed=k) for k in range(8)]
    wanted = [expected(spring, c) for c in cases]

    def run(k: int) -> bool:
        return all(same_bits(a, b) for _ in range(300) for a, b in zip(spring.apply(cases[k]), wanted[k], strict=True))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))


def test_without_the_quick_check_of_torch(spring: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that has no guards is slower, with the same results."""
    monkeypatch.setattr(plans, "TensorGuards", None)
    fresh = Kernel.of_recipe(spring._recipe)
    tensors = spring_inputs(2)
    for _ in range(2):
        for a, b in zip(fresh.apply(tensors), expected(spring, tensors), strict=True):
            assert same_bits(a, b)
