"""Robots with friction, robots that are wrong, and logs of motions, for identification tests."""

from __future__ import annotations

import numpy as np

from costate.core.arrays import Array
from costate.identify import Regressor
from costate.model import Model, load_model
from costate.robot.identified import with_parameters

TERMS = {"damping": (0.1, 0.5), "friction": (0.1, 0.5), "armature": (0.01, 0.05)}


def with_friction(name: str, seed: int = 0) -> Model:
    """A built-in robot with damping, friction and armature in every joint."""
    rng = np.random.default_rng(seed)
    model = load_model(name)
    moving = [j.name for j in model.joints if j.nv]
    return with_parameters(model, {(t, j): rng.uniform(*TERMS[t], 1) for t in TERMS for j in moving})


def guessed(model: Model, seed: int = 1) -> Model:
    """The robot with masses off by up to 30 % and nothing known of friction."""
    rng = np.random.default_rng(seed)
    masses = {("mass", x.name): np.array([x.inertia.mass * rng.uniform(0.7, 1.3)]) for x in model.links}
    none = {(t, j.name): np.zeros(1) for t in TERMS for j in model.joints if j.nv}
    return with_parameters(model, {**masses, **none})


def motion(model: Model, n: int = 1500, dt: float = 0.01, seed: int = 2) -> dict[str, Array]:
    """t, q, v, a, tau of sums of sines; the torques are those of the model."""
    rng = np.random.default_rng(seed)
    w, phase = rng.uniform(0.5, 3.0, (model.nv, 4)), rng.uniform(0, 2 * np.pi, (model.nv, 4))
    size = rng.uniform(0.1, 0.4, (model.nv, 4))
    t = np.arange(n) * dt
    angle = w * t[:, None, None] + phase
    q = (size * np.sin(angle)).sum(-1)
    v = (size * w * np.cos(angle)).sum(-1)
    a = -(size * w**2 * np.sin(angle)).sum(-1)
    regressor = Regressor.of(model)
    return {"t": t, "q": q, "v": v, "a": a, "tau": regressor.torques(q, v, a, regressor.pi())}


def noisy(log: dict[str, Array], relative: float, seed: int) -> dict[str, Array]:
    """White noise on the torques, relative to their root mean square per joint."""
    rng = np.random.default_rng(seed)
    level = relative * np.sqrt((log["tau"] ** 2).mean(0))
    return {**log, "tau": log["tau"] + level * rng.normal(size=log["tau"].shape)}
