"""Robots solved pair by pair: the same steps as by rows of one system, with limits, joint friction, drives and constraints."""

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
from costate.sim.contact.pgs.pairwise.choice import is_pairwise

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


def scene(
    arm: cs.Robot, mapped: bool | None, substeps: int = 1, parameters: tuple[str, ...] = (), **options: Any
) -> cs.World:
    """Two arms side by side over a floor, the left one held by servos, and two balls. mapped: None for no contact."""
    more = {k: options.pop(k) for k in ("integrator", "constraints", "tendons") if k in options}
    balls = [
        cs.Body(f"b{k}", [cs.shapes.sphere(0.08)], 0.4 + 0.2 * k, pose=at(0.3 + 0.14 * k, 0.0, 0.1)) for k in (0, 1)
    ]
    contact = None if mapped is None else cs.PGS(mapped=mapped, friction=0.4, sweeps=8, **options)
    return cs.World(
        {"left": arm, "right": arm}, balls, [cs.Static("floor", cs.shapes.plane())], contact=contact,
        poses={"left": at(0.0, 0.0, 0.12), "right": at(0.0, 0.35, 0.12)}, parameters=parameters, dt=0.01 * substeps,
        substeps=substeps, actuators={"left": cs.PositionServo(20.0, 1.0), "right": cs.Torque()}, **more,
    )  # fmt: skip


def touching(world: cs.World, batch: int) -> Tensor:
    """Arms near and beyond their limits, balls on the floor and against the arms; all of it moves."""
    random = torch.Generator().manual_seed(0)
    x = world.initial_state(batch)
    x[:, world.nq :] = torch.randn(batch, world.nv, dtype=D, generator=random)
    for name in ("left", "right"):
        x[:, world.coordinates(name)[0]] = 0.2 * torch.randn(batch, 2, dtype=D, generator=random)
    return x


CASES: dict[str, dict[str, Any]] = {
    "limits and friction of joints": {},
    "cone, split correction, bounces": {"cone": "cone", "correction": "split", "restitution": 0.4},
    "warm start": {"warm_start": True, "substeps": 2},
    "explicit": {"integrator": "explicit", "restitution": 0.3, "correction": "split"},
    "implicit, tendon and constraint": {
        "integrator": "implicit",
        "tendons": (CABLE,),
        "constraints": (cs.Connect("b0", "b1"),),
    },
}


@pytest.mark.parametrize("case", CASES)
def test_same_steps_as_by_rows(arm: cs.Robot, case: str) -> None:
    rows, mapped, free = (scene(arm, way, **CASES[case]) for way in (False, True, None))
    assert is_pairwise(cs.PGS(mapped=True), mapped.setup) and not is_pairwise(cs.PGS(), rows.setup)
    x = touching(rows, 16)
    u = torch.randn(16, rows.nu, dtype=D, generator=torch.Generator().manual_seed(1))
    expected = rows.step(x, u)
    assert (expected - free.step(x, u)).abs().max() > 0.1
    torch.testing.assert_close(mapped.step(x, u), expected, rtol=1e-10, atol=1e-10)


def test_forces_are_those_of_the_rows(arm: cs.Robot) -> None:
    rows, mapped = (scene(arm, way) for way in (False, True))
    x = touching(rows, 16)
    expected, found = rows.contacts(x), mapped.contacts(x)
    assert expected.forces.max() > 1
    assert found.shapes == expected.shapes
    torch.testing.assert_close(found.forces, expected.forces, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found.friction, expected.friction, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(mapped.gaps(x), rows.gaps(x), rtol=0, atol=1e-14)
    assert "4 limit, 4 friction" in mapped.report()


def test_gradients(arm: cs.Robot) -> None:
    """Of a step in the state, the control and parameters of joints, links and shapes, against differences."""
    names = ("friction", "damping:left/elbow", "friction:right/shoulder", "mass:left/lower", "size:b0")
    world = scene(arm, True, parameters=names)
    values = [torch.tensor(world.setup.default(p)) for p in names]
    x = touching(world, 16)[4]  # no row changes its state within reach of the differences
    control = torch.tensor([0.1, -0.2, 0.3, 0.4], dtype=D)

    def step(x: Tensor, u: Tensor, *given: Tensor) -> Tensor:
        return world.step(x, u, params=dict(zip(names, given, strict=True)))

    assert (world.contacts(x, control).forces > 0).any()
    check_gradients(step, (x, control, *values), names=("x", "u", *names))
