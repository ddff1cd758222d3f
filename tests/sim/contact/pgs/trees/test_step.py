"""Sweeps in worlds with robots: where they converge the steps of `Hard`, with limits, friction, drives, tendons, constraints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from torch import Tensor

import costate as cs
from costate.model import Transform
from costate.sim.looking import described

D = torch.float64
LINK = (
    '<link name="{0}"><inertial><origin xyz="0.2 0 0"/><mass value="{1}"/>'
    '<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="{3} 0 0"/><axis xyz="{4}"/>'
    '<limit lower="-0.3" upper="0.4" effort="50" velocity="10"/><dynamics damping="0.1" friction="0.3"/></joint>'
)
ARM = "".join(
    [
        '<robot name="arm"><link name="base"/>',
        LINK.format("upper", 1.0),
        LINK.format("lower", 0.7),
        JOINT.format("shoulder", "base", "upper", 0, "0 1 0"),
        JOINT.format("elbow", "upper", "lower", 0.4, "0 0 1"),
        "</robot>",
    ]
)
CABLE = cs.FixedTendon(
    "cable", {"left/shoulder": 0.05, "right/elbow": -0.03}, stiffness=40.0, damping=1.0, friction=0.3
)


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> cs.Robot:
    """Two hinges with limits and friction, and a capsule on each link."""
    path: Path = tmp_path_factory.mktemp("robots") / "arm.urdf"
    path.write_text(ARM)
    model = cs.load_robot(path).model
    capsule = cs.shapes.capsule(0.05, 0.3, (0.2, 0.0, 0.0), (0.0, np.pi / 2, 0.0))
    return cs.Robot(
        replace(model, links=(model.links[0], *(replace(x, collisions=(capsule,)) for x in model.links[1:])))
    )


def at(*p: float) -> Transform:
    return Transform(translation=np.array(p))


def scene(arm: cs.Robot, contact: cs.ContactModel | None, parameters: tuple[str, ...] = (), **more: Any) -> cs.World:
    """Two arms side by side over a floor, the left one held by servos, and two balls."""
    balls = [
        cs.Body(f"b{k}", [cs.shapes.sphere(0.08)], 0.4 + 0.2 * k, pose=at(0.3 + 0.165 * k, 0.14, 0.084)) for k in (0, 1)
    ]
    return cs.World(
        {"left": arm, "right": arm}, balls, [cs.Static("floor", cs.shapes.plane())], contact=contact,
        poses={"left": at(0.0, 0.0, 0.12), "right": at(0.0, 0.35, 0.12)}, parameters=parameters, dt=0.01,
        actuators={"left": cs.PositionServo(20.0, 1.0), "right": cs.Torque()}, **more,
    )  # fmt: skip


def touching(world: cs.World, batch: int) -> Tensor:
    """Arms near their limits, balls near the floor and the arms; all of it moves."""
    random = torch.Generator().manual_seed(0)
    x = world.initial_state(batch)
    x[:, world.nq :] = torch.randn(batch, world.nv, dtype=D, generator=random)
    for name in ("left", "right"):
        x[:, world.coordinates(name)[0]] = 0.2 * torch.randn(batch, 2, dtype=D, generator=random)
    return x


CASES: dict[str, dict[str, Any]] = {
    "limits and friction of joints": {},
    "explicit": {"integrator": "explicit"},
    "implicit, tendon": {"integrator": "implicit", "tendons": (CABLE,)},
    "constraint": {"constraints": (cs.Connect("b0", "b1"),)},
}


@pytest.mark.parametrize("case", CASES)
def test_converged_sweeps_are_hard_contact(arm: cs.Robot, case: str) -> None:
    """Velocities after a step, and forces in it, from states without overlap: how that is undone is each model's own."""
    swept, hard, free = (
        scene(arm, contact, **CASES[case])
        for contact in (
            cs.PGS(sweeps=500, friction=0.4, cfm=0.0, impacts=0), cs.Hard(friction=0.4, impacts=0), None,
        )
    )  # fmt: skip
    x = touching(hard, 48)
    inside = [(x[:, hard.coordinates(n)[0]] - 0.05).abs().amax(-1) < 0.349 for n in ("left", "right")]
    x = x[(hard.gaps(x).amin(-1) > 1e-4) & inside[0] & inside[1]]
    u = torch.randn(len(x), hard.nu, dtype=D, generator=torch.Generator().manual_seed(1))
    expected, found = hard.step(x, u), swept.step(x, u)
    assert len(x) >= 8 and (expected - free.step(x, u)).abs().amax(-1).median() > 0.1
    # With constraints, sweeps leave 1e-6 of a row's mobility to keep its factor regular (REGULARISATION in equality.py).
    most = 1e-4 if "constraints" in CASES[case] else 1e-6
    torch.testing.assert_close(found[:, hard.nq :], expected[:, hard.nq :], rtol=0, atol=most)
    one, other = swept.contacts(x, u), hard.contacts(x, u)
    assert one.shapes == other.shapes and other.forces.max() > 1
    torch.testing.assert_close(one.forces, other.forces, rtol=100 * most, atol=100 * most)
    texts = [described(w.setup, w._contacts) for w in (swept, hard)]  # without the times that `report` measures
    assert ("4 limit" in texts[0]) == ("4 limit" in texts[1])


def test_gradients(arm: cs.Robot) -> None:
    """Of a step in the state, the control and parameters of joints, links and shapes, against differences."""
    names = ("friction", "damping:left/elbow", "friction:right/shoulder", "mass:left/lower", "size:b0")
    world = scene(arm, cs.PGS(friction=0.4, sweeps=8), names)
    values = [torch.tensor(world.setup.default(p)) for p in names]
    x = touching(world, 16)[4]  # no row changes its state within reach of the differences
    control = torch.tensor([0.1, -0.2, 0.3, 0.4], dtype=D)

    def step(x: Tensor, u: Tensor, *given: Tensor) -> Tensor:
        return world.step(x, u, params=dict(zip(names, given, strict=True)))

    assert (world.contacts(x, control).forces > 0).any()
    check_gradients(step, (x, control, *values), names=("x", "u", *names))
