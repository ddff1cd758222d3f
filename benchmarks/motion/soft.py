"""Landings of soft contact: the mean of a derivative over starts, beside the slope of the motion over the same starts.

A soft contact begins with a force, in the first step that finds it: motions from starts a little apart begin theirs in different
phases of a step. Their ends, over a range of starts many steps wide, have a slope, which is the motion's derivative, whatever the
program's is at each of them. Starts are drawn one per interval of equal length: evenly spaced ones would beat with the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

import costate as cs
from costate.model import Inertia, Joint, Link, Model
from costate.model.surface import Softness

STARTS = 400
"""Number of starts."""
COMPLIANT = cs.Compliant(stiffness=1e4, damping=0.5, friction=0.5, friction_speed=0.5)
"""Friction as steep as steps of 2 ms bear."""
FLOOR = cs.Static("floor", cs.shapes.plane())
ROUND, TILTED = (0.0, 0.0, 0.0, 1.0), (0.0, 0.2474, 0.0, 0.9689)


@dataclass(frozen=True, eq=False)
class Landing:
    """A motion that begins or ends contact, or reaches a limit."""

    name: str
    world: Callable[[cs.ContactModel, float], cs.World]
    """World with a contact model and a step."""
    start: Mapping[int, float]
    """Entries of the state at the start, where they are not those of the initial state."""
    by: int
    """Entry of the state that is varied, over `span` from its start on."""
    span: float
    of: Mapping[str, int]
    """Entries of the state at the end whose derivatives are compared, by name."""
    seconds: float = 0.45
    newton: cs.Newton = field(default_factory=lambda: cs.Newton(friction=0.5))
    compliant: bool = False
    """True to compare `Compliant`, too."""


@dataclass(frozen=True)
class Slope:
    """A derivative of the motion: mean and standard deviation over starts by automatic differentiation, and the slope of values."""

    mean: float
    deviation: float
    motion: float


def slopes(scene: Landing, contact: cs.ContactModel, dt: float, starts: int = STARTS) -> dict[str, Slope]:
    """Return the derivatives of a landing, by name."""
    world = scene.world(contact, dt)
    random = np.random.default_rng(0)
    moved = torch.tensor(scene.span * (np.arange(starts) + random.uniform(size=starts)) / starts)
    state = world.initial_state(starts, dtype=torch.float64)
    for k, value in scene.start.items():
        state[:, k] = value
    direction = torch.zeros_like(state)
    direction[:, scene.by] = 1
    state = state + moved[:, None] * direction
    controls = torch.zeros(round(scene.seconds / dt), starts, world.nu, dtype=torch.float64)

    def end(x: Tensor) -> Tensor:
        return world.rollout(x, controls, checkpoint=1)[-1]

    found = torch.func.jvp(end, (state,), (direction,))
    ends, along = found[0], found[1]
    centred = moved - moved.mean()
    motion = (centred[:, None] * ends).sum(0) / centred.square().sum()
    # The slope of a fitted line is a mean of the derivative, in which the middle of the range counts most.
    weight = (scene.span / 2) ** 2 - (moved - scene.span / 2) ** 2
    mean = (weight[:, None] * along).sum(0) / weight.sum()
    return {name: Slope(float(mean[k]), float(along[:, k].std()), float(motion[k])) for name, k in scene.of.items()}


# --- scenes -----------------------------------------------------------------------------------------------------------


def bodies(*solids: cs.shapes.Shape, integrator: str | None = None, floor: bool = True, gravity: float = -9.81):
    """Return the maker of a world of free bodies, of one kilogramme and one more each."""

    def made(contact: cs.ContactModel, dt: float) -> cs.World:
        free = [cs.Body(f"body{k}", [solid], mass=1.0 + k) for k, solid in enumerate(solids)]
        return cs.World(
            bodies=free, scenery=[FLOOR] if floor else [], contact=contact, dt=dt, integrator=integrator,
            gravity=(0.0, 0.0, gravity), check=False,
        )  # fmt: skip

    return made


def arm(links: int, lower: float, tendon: bool = False, leg: bool = False):
    """Return the maker of a world with an arm of links of 0.3 m in a vertical plane; the last joint, or a tendon over all of them,
    has a limit. As a leg it hangs from a slider, has a foot and lands on the floor."""
    down = Inertia(1.0, np.array([0.0, 0.0, -0.15]), 0.01 * np.eye(3))
    parts, joints = [Link("base")], []
    if leg:
        parts.append(Link("hip", Inertia(2.0, np.zeros(3), 0.02 * np.eye(3))))
        joints.append(Joint("slider", "prismatic", "base", "hip", axis=np.array([0.0, 0.0, 1.0])))
    for k in range(links):
        last = k == links - 1
        foot = (cs.shapes.sphere(0.03, (0, 0, -0.3)),) if leg and last else ()
        joints.append(
            Joint(
                f"joint{k}", "revolute", parts[-1].name, f"link{k}", cs.Transform.at((0, 0, -0.3 if k else 0)),
                axis=np.array([0.0, 1.0, 0.0]), lower=np.array([lower if last and not tendon else -np.inf]),
                upper=np.array([np.inf]),
            )
        )  # fmt: skip
        parts.append(Link(f"link{k}", down, collisions=foot))

    def made(contact: cs.ContactModel, dt: float) -> cs.World:
        cables = [cs.FixedTendon("cable", {f"joint{k}": 1.0 for k in range(links)}, lower=lower)] if tendon else []
        return cs.World(
            {"arm": cs.Robot(Model("arm", tuple(parts), tuple(joints)))}, scenery=[FLOOR] if leg else [],
            contact=contact, dt=dt, tendons=cables, check=False,
        )  # fmt: skip

    return made


def laikago(contact: cs.ContactModel, dt: float) -> cs.World:
    robot = cs.load_robot("laikago", floating_base=True)
    return cs.World({"robot": robot}, scenery=[FLOOR], contact=contact, dt=dt, check=False)


THROWN = {7: 1.0, 11: 3.0}
"""Sideways, with spin [m/s, rad/s]."""
BALL = Landing(
    "ball with spin, pyramidal", bodies(cs.shapes.sphere(0.1)), {2: 0.4, **THROWN}, 2, 0.01, {"x": 0, "omega_y": 11},
    compliant=True,
)  # fmt: skip
LIMIT = Landing("arm on its limit", arm(1, -0.2), {0: 0.3, 1: -2.0}, 0, 0.05, {"angle": 0, "speed": 1}, 0.5)
LANDINGS = (
    BALL,
    replace(BALL, name="the same, elliptic", newton=cs.Newton(friction=0.5, cone="elliptic"), compliant=False),
    replace(BALL, name="the same, rk4", world=bodies(cs.shapes.sphere(0.1), integrator="rk4"), compliant=False),
    replace(BALL, name="the same, margin of 5 mm", newton=cs.Newton(friction=0.5, margin=0.005), compliant=False),
    replace(BALL, name="the same, pair by pair", newton=cs.Newton(friction=0.5, mapped=True), compliant=False),
    Landing(
        "capsule, tilted: two landings", bodies(cs.shapes.capsule(0.04, 0.2)),
        {2: 0.4, 4: TILTED[1], 6: TILTED[3], **THROWN}, 2, 0.01, {"x": 0}, compliant=True,
    ),
    Landing(
        "box, flat, slides: four corners at once", bodies(cs.shapes.box((0.2, 0.2, 0.1))), {2: 0.3, 7: 1.0}, 2, 0.01,
        {"x": 0}, 0.4, compliant=True,
    ),
    Landing(
        "bounce, solref (-2e4, -5)", bodies(cs.shapes.sphere(0.1)), {2: 0.4}, 2, 0.02, {"z": 2}, 0.55,
        cs.Newton(condim=1, softness=Softness(solref=(-2e4, -5.0))),
    ),
    Landing(
        "bounce, solref (0.02, 0.1)", bodies(cs.shapes.sphere(0.1)), {2: 0.4}, 2, 0.02, {"z": 2}, 0.55,
        cs.Newton(condim=1, softness=Softness(solref=(0.02, 0.1))),
    ),
    LIMIT,
    replace(LIMIT, name="the same, solref (0.02, 0.3)", newton=cs.Newton(softness=Softness(solref=(0.02, 0.3)))),
    Landing(
        "two links, limit of a tendon", arm(2, -0.6, tendon=True), {0: 0.2, 1: 0.1, 2: -2.0, 3: -1.0}, 0, 0.05,
        {"second angle": 1, "second speed": 3}, 0.5,
    ),
    Landing(
        "leg that lands while its knee reaches its limit", arm(2, 0.1, leg=True), {0: 0.8, 1: -0.4, 2: 0.3, 5: -3.0}, 0, 0.02,
        {"hip v_z": 3, "knee": 2}, 0.3,
    ),
    Landing(
        "two balls, off centre", bodies(cs.shapes.sphere(0.1), cs.shapes.sphere(0.1), floor=False, gravity=0.0),
        {0: -0.4, 1: 0.05, 2: 0.0, 7: 0.0, 8: 0.0, 9: 0.0, 14: 2.0}, 0, 0.02, {"x of the first": 0},
    ),
    Landing("Laikago, dropped", laikago, {2: 0.52, 19: 0.3}, 2, 0.02, {"base x": 0, "base v_z": 21}, 0.2),
)  # fmt: skip
