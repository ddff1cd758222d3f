"""Costate in JAX: an arm swings up by optax, and diffrax integrates its equation of motion.

Kernels of robots and worlds are functions of JAX arrays: jit, grad, vmap and scan work, with the same bits as torch.
Needs the extra `jax`, and optax and diffrax.
"""

from __future__ import annotations

import os
from pathlib import Path

import diffrax
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import costate as cs
import costate.jax as cj

jax.config.update("jax_enable_x64", True)  # robots need float64 for small errors; without it, all is float32
QUICK = "COSTATE_QUICK" in os.environ
OUT = Path("out")
OUT.mkdir(exist_ok=True)

# --- optax: torques that swing a double pendulum up ------------------------------------------------------------------

robot = cs.load_robot("pendulum2")
world = cs.World([robot], actuators=cs.Torque(limit=20.0), contact=None, dt=0.01)
w, r = cj.world(world), cj.robot(robot)
start = jnp.zeros(world.nx)
tip = robot.link_names[-1]
steps = 150


def loss(torques):
    """Return how far the arm is from upright and at rest at the end, and what it costs."""
    states = w.rollout(start, torques)
    away = states[-1, : world.nq] - jnp.array([jnp.pi, 0.0])
    return (away**2).sum() + 0.1 * (states[-1, world.nq :] ** 2).sum() + 1e-5 * (torques**2).mean()


optimiser = optax.adam(optax.cosine_decay_schedule(0.3, 60 if QUICK else 300))


@jax.jit
def improve(torques, moments):
    """Do one step of Adam."""
    value, gradient = jax.value_and_grad(loss)(torques)
    updates, moments = optimiser.update(gradient, moments, torques)
    return optax.apply_updates(torques, updates), moments, value


torques = 0.1 * jax.random.normal(jax.random.key(0), (steps, world.nu))
moments, losses = optimiser.init(torques), []
for _ in range(60 if QUICK else 300):
    torques, moments, value = improve(torques, moments)
    losses.append(float(value))
states = w.rollout(start, torques)
print(f"swing-up: loss {losses[0]:.2f} -> {losses[-1]:.4f} after {len(losses)} steps of Adam")

# --- diffrax: the free fall of the same arm, with an adaptive step ---------------------------------------------------


def equation(t, state, torque):
    """Return velocities and accelerations."""
    q, v = state
    return v, r.forward_dynamics(q, v, torque)


times = jnp.linspace(0.0, 2.0, 101)
solution = diffrax.diffeqsolve(
    diffrax.ODETerm(equation),
    diffrax.Tsit5(),
    0.0,
    2.0,
    0.01,
    (jnp.array([1.0, 0.5]), jnp.zeros(2)),
    args=jnp.zeros(2),
    saveat=diffrax.SaveAt(ts=times),
    stepsize_controller=diffrax.PIDController(rtol=1e-10, atol=1e-10),
)
assert solution.ys is not None
q, v = solution.ys
energy = jax.vmap(r.kinetic_energy)(q, v) + jax.vmap(r.potential_energy)(q)
drift = float(jnp.abs(energy - energy[0]).max())
print(f"free fall: {int(solution.stats['num_steps'])} steps, energy drifts by {drift:.1e} J")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
left.plot(world.dt * np.arange(steps + 1), states[:, : world.nq], label=robot.joint_names)
left.set(xlabel="time [s]", ylabel="angle [rad]", title="Swing-up by optax")
left.legend()
right.plot(times, q, label=robot.joint_names)
right.set(xlabel="time [s]", ylabel="angle [rad]", title="Free fall by diffrax")
figure.tight_layout()
figure.savefig(OUT / "20_jax.png", dpi=110)
assert losses[-1] < (0.5 * losses[0] if QUICK else 0.3) and drift < 1e-6
