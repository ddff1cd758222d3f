"""Worlds in JAX: steps and roll-outs through contact, with the gradients of torch, bit for bit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from tests.jax.test_function import arrays, gradient, numbers, same

import costate as cs
import costate.jax as cj

CONTACTS = {"hard": cs.Hard(friction=0.5), "newton": cs.Newton(friction=0.5), "compliant": cs.Compliant()}


def falling(contact: Any, **options: Any) -> cs.World:
    """A ball that falls onto a floor, and a pendulum with a motor."""
    ball = cs.Body("ball", [cs.shapes.sphere(0.05)], mass=0.2, position=(0, 0, 0.06))
    return cs.World(
        [cs.load_robot("pendulum")],
        bodies=[ball],
        scenery=[cs.Static("floor", cs.shapes.plane())],
        contact=contact,
        dt=0.01,
        substeps=2,
        parameters=["friction"] if not isinstance(contact, cs.Compliant) else ["gravity"],
        poses={"pendulum": (2.0, 0, 1.0)},
        **options,
    )


@pytest.mark.parametrize(
    ("contact", "dtype"), [("hard", torch.float64), ("newton", torch.float64), ("compliant", torch.float32)]
)
def test_rollouts_have_the_bits_of_torch(contact: str, dtype: torch.dtype) -> None:
    world = falling(CONTACTS[contact])
    w, (name,) = cj.world(world), world.setup.parameters
    state, controls = world.initial_state(dtype=dtype), 0.5 * numbers(30, world.nu, dtype=dtype)
    value = torch.tensor(np.asarray(world.setup.default(name)).ravel(), dtype=dtype)
    leaves = [t.clone().requires_grad_() for t in (state, controls, value)]
    states = world.rollout(leaves[0], leaves[1], params={name: leaves[2]})
    weights = numbers(*states.shape, seed=3, dtype=dtype)
    (states * weights).sum().backward()
    given, (seed,) = arrays(state, controls, value), arrays(weights)

    def run(x: Any, u: Any, p: Any) -> Any:
        return w.rollout(x, u, {name: p})

    def scanned(x: Any, u: Any, p: Any) -> Any:
        def step(x: Any, u: Any) -> Any:
            after = w.step(x, u, {name: p})
            return after, after

        return jnp.concatenate([x[None], jax.lax.scan(step, x, u)[1]])

    for f in (run, scanned):
        assert same(jax.jit(f)(*given), states)
    found = jax.jit(jax.grad(lambda *a: (run(*a) * seed).sum(), (0, 1, 2)))(*given)
    assert all(same(a, gradient(b)) for a, b in zip(found, leaves, strict=True))
    stepped = jax.jit(jax.grad(lambda *a: (scanned(*a) * seed).sum(), (0, 1)))(*given)
    allowed = 1e-9 if dtype is torch.float64 else 2e-2
    for a, b in zip(stepped, leaves[:2], strict=True):
        np.testing.assert_allclose(a, gradient(b), rtol=allowed, atol=allowed)


def test_batches_and_second_derivatives() -> None:
    world = cs.World([cs.load_robot("pendulum2")], contact=None, dt=0.01)
    w = cj.world(world)
    state = world.initial_state(dtype=torch.float64)
    states = state + 0.01 * numbers(6, world.nx)
    controls = numbers(8, 6, world.nu)
    assert same(w.rollout(*arrays(states, controls)), world.rollout(states, controls))
    mapped = jax.vmap(w.rollout, (0, 1), 1)(*arrays(states, controls))
    assert same(mapped, world.rollout(states, controls))

    def loss(u: Any) -> Any:
        return (w.rollout(arrays(state)[0], u)[-1] ** 2).sum()

    (u,) = arrays(numbers(8, world.nu, seed=5))
    along, h = jnp.ones_like(u), 1e-5
    product = jax.jvp(jax.grad(loss), (u,), (along,))[1]
    difference = (jax.grad(loss)(u + h * along) - jax.grad(loss)(u - h * along)) / (2 * h)
    np.testing.assert_allclose(product, difference, rtol=1e-5, atol=1e-8)
    back = jax.grad(lambda u: (jax.grad(loss)(u) * along).sum())(u)
    np.testing.assert_allclose(back, product, rtol=1e-10, atol=1e-12)


def test_states_that_are_not_finite_raise() -> None:
    world = falling(cs.Hard())
    state = arrays(world.initial_state(dtype=torch.float64))[0].at[0].set(jnp.nan)
    with pytest.raises(Exception, match=r"a state is not finite after 'world.step'"):
        cj.world(world).step(state).block_until_ready()
    unchecked = cj.world(falling(cs.Hard(), check=False))
    assert bool(jnp.isnan(unchecked.step(state)).any())


def test_errors_of_worlds() -> None:
    world = falling(cs.Hard())
    w, state = cj.world(world), arrays(world.initial_state(dtype=torch.float64))[0]
    with pytest.raises(ValueError, match=r"controls have shape \(5,\); expected \(T, ..., 1\)"):
        w.rollout(state, jnp.ones(5))
    with pytest.raises(ValueError, match=r"unknown parameter of the world 'frictoin'.*friction"):
        w.step(state, params={"frictoin": 0.2})
    learning = cs.load_robot("pendulum")
    learning.learn(learning.link_names[-1], "mass")
    with pytest.raises(ValueError, match="learnable parameters"):
        cj.world(cs.World([learning], contact=None))


@pytest.mark.parametrize("contact", ["hard", "compliant"])
def test_wrenches_linearisations_and_looks_have_the_bits_of_torch(contact: str) -> None:
    world = falling(CONTACTS[contact])
    w = cj.world(world)
    states = world.initial_state(dtype=torch.float64) + 0.01 * numbers(3, world.nx)
    states[:, :7] = world.initial_state(dtype=torch.float64)[:7]  # a unit quaternion
    control, push = numbers(3, world.nu), {"ball": numbers(3, 6, seed=2)}
    pushes = {"ball": numbers(5, 3, 6, seed=4)}
    (x, u), p, ps = (
        arrays(states, control),
        dict(zip(push, arrays(*push.values()), strict=True)),
        dict(zip(pushes, arrays(*pushes.values()), strict=True)),
    )
    assert same(jax.jit(w.step)(x, u, None, p), world.step(states, control, wrenches=push))
    assert not same(w.step(x, u), world.step(states, control, wrenches=push))
    rolled = world.rollout(states, control.expand(5, -1, -1), wrenches=pushes)
    assert same(w.rollout(x, jnp.broadcast_to(u, (5, *u.shape)), wrenches=ps), rolled)
    for a, b in zip(jax.jit(w.linearize)(x, u, None, p), world.linearize(states, control, wrenches=push), strict=True):
        assert same(a, b)
    found, wanted = jax.jit(w.contacts)(x, u, None, p), world.contacts(states, control, wrenches=push)
    for name, a in found._asdict().items():
        assert same(a, getattr(wanted, name)), name
    assert same(w.gaps(x), world.gaps(states)) and same(w.energy(x), world.energy(states))
    pose, other = w.link_pose(x, "ball"), world.link_pose(states, "ball")
    assert same(pose.position, other.position) and same(pose.rotation, other.rotation)
    down = jax.grad(lambda p: w.step(x[0], u[0], None, {"ball": p})[..., w.world.nq + 2].sum())(p["ball"][0])
    leaf = push["ball"][0].clone().requires_grad_()
    world.step(states[0], control[0], wrenches={"ball": leaf})[world.nq + 2].backward()
    assert same(down, gradient(leaf))


def test_sequences_of_different_lengths_are_refused() -> None:
    world = falling(cs.Hard())
    w, state = cj.world(world), arrays(world.initial_state(dtype=torch.float64))[0]
    with pytest.raises(ValueError, match=r"one row for each step; controls: 5, wrenches of 'ball': 4"):
        w.rollout(state, jnp.ones((5, 1)), wrenches={"ball": jnp.ones((4, 6))})
