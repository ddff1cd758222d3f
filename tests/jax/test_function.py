"""Kernels and robots in JAX: the same bits as in torch, under every transform, and errors in the user's words."""

from __future__ import annotations

import threading
from typing import Any

import casadi as ca
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import costate as cs
import costate.jax as cj
from costate.kernel import Kernel
from costate.kernel.fields import OWN, FieldBuilder
from costate.physics import FUNCTIONS

DOUBLE, SINGLE = torch.float64, torch.float32
CASES = [("ur5", name, DOUBLE) for name in FUNCTIONS] + [
    ("laikago", "forward_dynamics", DOUBLE),
    ("laikago", "integrate", DOUBLE),
    ("ur5", "forward_dynamics", SINGLE),
    ("ur5", "mass_matrix", SINGLE),
]
LINKED = {name for name, row in FUNCTIONS.items() if "link" in row.options}


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def arrays(*tensors: torch.Tensor) -> list[Any]:
    return [jnp.asarray(t.detach().numpy()) for t in tensors]


def same(found: Any, wanted: torch.Tensor) -> bool:
    """Return whether all bits are the same."""
    return np.array_equal(np.asarray(found), wanted.detach().numpy())


def gradient(leaf: torch.Tensor) -> torch.Tensor:
    """Return the gradient that a backward pass has left."""
    assert leaf.grad is not None
    return leaf.grad


def inputs_of(robot: cs.Robot, name: str, dtype: torch.dtype, batch: int = 5) -> list[torch.Tensor]:
    q = [robot.random_configuration(batch, seed=k, dtype=dtype) for k in range(2)]
    v = [numbers(batch, robot.nv, seed=k, dtype=dtype) for k in range(3)]
    known = {"q": q[0], "q0": q[0], "q1": q[1], "v": v[0], "a": v[1], "tau": v[2]}
    known["dt"] = torch.full((batch, 1), 0.01, dtype=dtype)
    return [known[each] for each in FUNCTIONS[name].inputs]


@pytest.mark.parametrize(("which", "name", "dtype"), CASES)
def test_functions_of_a_robot_have_the_same_bits(which: str, name: str, dtype: torch.dtype) -> None:
    """Values, gradients and tangents, jitted."""
    robot = cs.load_robot(which)
    options = {"link": robot.link_names[-1]} if name in LINKED else {}
    kernel, tensors = robot.kernel(name, **options), inputs_of(robot, name, dtype)
    f, n = cj.function(kernel), len(tensors)
    given = arrays(*tensors)

    def flat(*x: Any) -> Any:
        return jax.tree.leaves(f(*x))

    leaves = [t.clone().requires_grad_() for t in tensors]
    wanted = kernel.apply(leaves)
    assert all(same(a, b) for a, b in zip(jax.jit(flat)(*given), wanted, strict=True))
    seeds = [numbers(*w.shape, seed=9, dtype=dtype) for w in wanted]
    torch.autograd.backward(wanted, seeds)
    found = jax.jit(lambda x, s: jax.vjp(flat, *x)[1](s))(given, arrays(*seeds))
    assert all(same(a, b.grad) for a, b in zip(found, leaves, strict=True) if b.grad is not None)
    dots = [numbers(*t.shape, seed=7, dtype=dtype) for t in tensors]
    pushed = kernel.derivative("jvp", tuple(range(n)), ()).run([*tensors, *dots])
    assert all(same(a, b) for a, b in zip(jax.jvp(flat, given, arrays(*dots))[1], pushed, strict=True))


@pytest.mark.parametrize("name", ["ur5", "pendulum"])
def test_robots_answer_as_in_torch(name: str) -> None:
    """Every function has the form that cs.Robot gives it."""
    robot = cs.load_robot(name).double()
    r, link = cj.robot(robot), robot.link_names[-1]
    for function in FUNCTIONS:
        tensors = inputs_of(robot, function, torch.float64)
        options = {"link": link} if function in LINKED else {}
        tensors = [t[..., 0, 0] if f == "dt" else t for f, t in zip(FUNCTIONS[function].inputs, tensors, strict=True)]
        wanted, found = (
            getattr(robot, function)(*tensors, **options),
            getattr(r, function)(*arrays(*tensors), **options),
        )
        if function == "forward_kinematics":
            assert same(found.position, wanted.position) and same(found.rotation, wanted.rotation)
        elif isinstance(wanted, tuple):
            assert getattr(found, "_fields", None) == getattr(wanted, "_fields", None), function
            assert all(a.shape == b.shape and same(a, b) for a, b in zip(found, wanted, strict=True)), function
        else:
            assert found.shape == wanted.shape and same(found, wanted), function
    poses = r.forward_kinematics(*arrays(robot.neutral(dtype=torch.float64)))
    assert list(poses) == robot.link_names


@pytest.fixture(scope="module")
def spring() -> Kernel:
    """A kernel of a state, a parameter that all samples may share, and two outputs."""
    x, k = ca.SX.sym("x", 3), ca.SX.sym("k")
    return Kernel("spring", {"x": x, "k": k}, {"force": -k * ca.sin(x), "energy": k * ca.sumsqr(x) / 2})


def test_transforms_nest(spring: Kernel) -> None:
    """Against closed forms: vmap of grad of vmap, hessians in all four orders, checkpoint, scan."""
    f = cj.function(spring)
    x, k = jnp.linspace(0.1, 1.2, 12).reshape(4, 3), jnp.asarray([2.0])

    def total(x: Any, k: Any) -> Any:
        out = f(x, k)
        return jnp.sum(out.force * x) + out.energy.sum()

    wanted = -2 * (np.sin(x) + x * np.cos(x)) + 2 * x
    np.testing.assert_allclose(jax.vmap(jax.grad(total), (0, None))(x, k), wanted, rtol=1e-14)
    np.testing.assert_allclose(jax.grad(lambda x: jax.vmap(total, (0, None))(x, k).sum())(x), wanted, rtol=1e-14)
    second = np.diag(np.asarray(-2 * (2 * np.cos(x[0]) - x[0] * np.sin(x[0])) + 2))
    for outer in (jax.jacfwd, jax.jacrev):
        for inner in (jax.jacfwd, jax.jacrev):
            np.testing.assert_allclose(outer(inner(total))(x[0], k), second, atol=1e-13)
    third = jax.jacfwd(jax.jacrev(jax.jacfwd(total)))(x[0], k)
    np.testing.assert_allclose(third[0, 0, 0], 2 * (3 * np.sin(x[0, 0]) + x[0, 0] * np.cos(x[0, 0])), rtol=1e-12)

    def body(c: Any, _: Any) -> Any:
        return c + 0.01 * f(c, k).force, None

    def end(x: Any) -> Any:
        return jax.lax.scan(jax.checkpoint(body), x, None, length=20)[0].sum()

    step = 1e-6
    difference = (end(x[0] + step) - end(x[0] - step)) / (2 * step)
    assert float(jax.jit(jax.grad(end))(x[0]).sum()) == pytest.approx(float(difference), rel=1e-8)


def test_gradients_of_shared_inputs_are_summed(spring: Kernel) -> None:
    f, x = cj.function(spring), jnp.linspace(-1, 1, 3 * 40).reshape(2, 20, 3)
    for shape in ((1,), (1, 1), (20, 1), (2, 1, 1)):
        k = jnp.full(shape, 1.5)
        found = jax.grad(lambda k: f(x, k).energy.sum())(k)
        each = np.asarray((x**2).sum(-1, keepdims=True) / 2)
        axes = tuple(range(3 - len(shape))) + tuple(a + 3 - len(shape) for a, n in enumerate(shape) if n == 1)
        np.testing.assert_allclose(found, each.sum(axes).reshape(shape), rtol=1e-12)


def test_any_batch_and_threads(spring: Kernel) -> None:
    """No samples, one, and so many that XLA's threads share them; several callers at once; the same bits as alone."""
    robot = cs.load_robot("ur5")
    kernel = robot.kernel("forward_dynamics")
    f = jax.jit(cj.function(kernel))
    for batch in ((), (0,), (1,), (3, 7), (20_001,)):
        tensors = [numbers(*batch, 6, seed=k) for k in range(3)]
        assert same(f(*arrays(*tensors)), kernel.run(tensors)[0])
    wrong: list[int] = []

    def work(seed: int) -> None:
        tensors = [numbers(5_000, 6, seed=seed + k) for k in range(3)]
        given = arrays(*tensors)
        for _ in range(10):
            if not same(f(*given), kernel.run(tensors)[0]):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(10 * k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_large_workspaces_and_fields() -> None:
    """Heat in a rod of 50,000 bars: a kernel over fields, whose workspace is no matter of kilobytes."""
    n = 50_000
    f = FieldBuilder("rod")
    nodes, bars = f.entities("nodes", n), f.entities("bars", n - 1)
    ends = f.table(bars, nodes, np.stack([np.arange(n - 1), np.arange(1, n)], 1))
    T, k = f.field("T", nodes), f.input("k", 1)
    (heat,) = f.for_each(bars, lambda T, k: k * ca.vertcat(T[1] - T[0], ca.sin(T[0] - T[1])), [T[ends], k], [ends])
    f.field_output("T", f.for_each(nodes, lambda T, q: T + q, [T, heat], [OWN])[0])
    kernel = f.kernel()
    assert kernel.derivative("vjp", (0, 1), (0,)).code("f64").workspace_bytes > 500_000
    tensors = [numbers(n), torch.tensor([0.7], dtype=torch.float64)]
    leaves = [t.clone().requires_grad_() for t in tensors]
    kernel.apply(leaves)[0].square().sum().backward()
    found = jax.jit(jax.grad(lambda x, k: (cj.function(kernel)(x, k) ** 2).sum(), (0, 1)))(*arrays(*tensors))
    assert same(found[0], gradient(leaves[0]))
    np.testing.assert_allclose(found[1], gradient(leaves[1]), rtol=1e-12)


def test_learnable_parameters_are_arguments() -> None:
    robot = cs.load_robot("pendulum").double()
    link = robot.link_names[-1]
    robot.learn(link, "mass")
    q, tau = jnp.asarray([0.3]), jnp.asarray([0.1])
    r, name = cj.robot(robot), f"mass:{link}"
    usual = r.forward_dynamics(q, q, tau)
    heavier = r.forward_dynamics(q, q, tau, **{name: jnp.asarray([5.0])})
    angle, torque = (torch.tensor([x], dtype=torch.float64) for x in (0.3, 0.1))
    wanted = robot.forward_dynamics(angle, angle, torque)
    assert float(usual[0]) == float(wanted.detach()[0])
    assert float(heavier[0]) != float(usual[0])
    slope = jax.grad(lambda m: r.forward_dynamics(q, q, tau, **{name: m})[0])(jnp.asarray([5.0]))
    ends = [float(r.forward_dynamics(q, q, tau, **{name: jnp.asarray([5.0 + h])})[0]) for h in (1e-5, -1e-5)]
    assert float(slope[0]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def test_errors_say_what_to_do(spring: Kernel) -> None:
    f = cj.function(spring)
    x, k = jnp.ones(3), jnp.ones(1)
    with pytest.raises(ValueError, match=r"'spring': x has shape \(4,\); expected x \(..., 3\)"):
        f(jnp.ones(4), k)
    with pytest.raises(ValueError, match=r"don't broadcast: x \(2,\), k \(3,\)"):
        f(jnp.ones((2, 3)), jnp.ones((3, 1)))
    with pytest.raises(TypeError, match="needs input k"):
        f(x)
    with pytest.raises(TypeError, match=r"was given 3 arrays; it takes spring\(x"):
        f(x, k, k)
    with pytest.raises(TypeError, match="has no input 'y'"):
        f(x, y=k)
    with pytest.raises(AttributeError, match="forward_dynamics"):
        cj.robot(cs.load_robot("ur5")).forward_dynamic  # noqa: B018
    with jax.enable_x64(False):
        assert f(np.ones(3, np.float32), np.ones(1, np.float32)).force.dtype == jnp.float32
        with pytest.raises(ValueError, match=r"x is float64, but JAX has 32 bits only.*jax_enable_x64"):
            f(np.ones(3), np.ones(1, np.float32))
