"""MuJoCo's solref and solimp as parameters: against worlds built with other numbers, MuJoCo itself, and differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.gradients import Tolerances, check_gradients
from torch import Tensor

import costate as cs
from costate.model import Inertia, Joint, Link, Model, Transform
from costate.model.surface import Softness

D = torch.float64
SOFT = Softness((0.03, 0.8), (0.8, 0.93, 0.004, 0.4, 2.5))
STIFF = Softness((-4e3, -60.0), (0.8, 0.93, 0.004, 0.4, 1.0))
TOLERANCES = Tolerances(finite_difference=1e-6, float32=1e-3)


def world_of(softness: Softness, parameters: list[str]) -> cs.World:
    """A ball that lies in the ground, and a pendulum beyond its limit, with Coulomb friction."""
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], 0.5, pose=Transform(np.eye(3), np.array([0, 0, 0.0987])))
    rod = Link("rod", Inertia(1.0, np.array([0.0, 0.0, -0.3]), 0.01 * np.eye(3)))
    hinge = Joint("hinge", "revolute", "base", "rod", axis=np.array([0.0, 1.0, 0.0]))
    hinge = replace(hinge, friction=0.2, lower=np.array([-0.5]), upper=np.array([0.5]))
    arm = cs.Robot(Model("arm", (Link("base"), rod), (hinge,)))
    ground = cs.Static("ground", cs.shapes.plane())
    contact = cs.Newton(softness=softness, friction=0.6)
    return cs.World([arm], [ball], [ground], contact=contact, parameters=parameters, dt=0.004)


def start_of(world: cs.World) -> Tensor:
    state = world.initial_state()
    state[0], state[8:] = 0.5015, torch.tensor([0.3, 0.6, 0.1, -0.1, 0.2, -0.3, 0.4])
    return state


@pytest.mark.parametrize("softness", [SOFT, STIFF], ids=["time constant", "stiffness"])
def test_for_all(softness: Softness) -> None:
    """Five steps of all constraints at once, with values beside the defaults."""
    world = world_of(softness, ["solref", "solimp"])
    still = torch.zeros(5, 1, dtype=D)
    plain = world_of(softness, []).rollout(start_of(world), still)
    torch.testing.assert_close(world.rollout(start_of(world), still), plain, rtol=1e-9, atol=1e-11)
    solref, solimp = (1.1 * torch.tensor(x, dtype=D) for x in (softness.solref, softness.solimp))
    solimp[1] = 0.95
    other = Softness(tuple(solref.tolist()), tuple(solimp.tolist()))  # type: ignore[arg-type]
    built = world_of(other, []).rollout(start_of(world), still)
    found = world.rollout(start_of(world), still, params={"solref": solref, "solimp": solimp})
    torch.testing.assert_close(found, built, rtol=1e-9, atol=1e-11)

    def after(solref: Tensor, solimp: Tensor) -> Tensor:
        x = start_of(world).to(solref.dtype).expand(*solref.shape[:-1], -1)
        return world.rollout(x, still.to(solref.dtype)[:, None], params={"solref": solref, "solimp": solimp})[-1]

    report = check_gradients(after, (solref, solimp), names=("solref", "solimp"), step=1e-4, tolerances=TOLERANCES)
    assert not report.zeros
    pair = torch.stack([solref, torch.tensor(softness.solref, dtype=D)])
    torch.testing.assert_close(after(pair, solimp)[0], built[-1], rtol=1e-9, atol=1e-11)


OWN = ["solref:ball", "solimp:ground", "solreflimit:arm/hinge", "solimplimit:arm/hinge", "solreffriction:arm/hinge"]


def test_for_one() -> None:
    """Numbers of one shape, which are mixed with those of the other; of a limit; of friction."""
    world = world_of(SOFT, OWN)
    values = [torch.tensor(world.setup.default(p)) * 1.15 for p in OWN]
    values = [v.clamp(max=0.94) if v.numel() == 5 and k == 1 else v for k, v in enumerate(values)]
    still = torch.zeros(3, 1, dtype=D)

    def after(*given: Tensor) -> Tensor:
        x = start_of(world).to(given[0].dtype)
        return world.rollout(x, still.to(x.dtype), params=dict(zip(OWN, given, strict=True)))[-1]

    report = check_gradients(after, values, names=OWN, step=1e-4, tolerances=TOLERANCES)
    assert not report.zeros


BALLS = """<mujoco><option timestep="0.003"/><worldbody>
  <body name="a"><freejoint/><geom size=".1" mass="1" solmix="2" solref="{a}" solimp="{imp}"/></body>
  <body name="b" pos="0 0.1985 0"><freejoint/><geom size=".1" mass="2" solref="{b}"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("a", [(0.03, 0.7), (-900.0, -30.0)], ids=["times", "a stiffness and a time"])
def test_mixing_is_mujocos(a: tuple[float, float], tmp_path: Path) -> None:
    """Two balls that overlap, each with its own numbers."""
    mujoco = pytest.importorskip("mujoco")
    b, imp = (0.05, 1.2), (0.7, 0.9, 0.003, 0.6, 3.0)
    file = tmp_path / "balls.xml"
    file.write_text(BALLS.format(a="-500 -20" if a[0] < 0 else "0.02 1", b="0.02 1", imp="0.9 0.95 0.001 0.5 2"))
    names = ["solref:balls/a/0", "solref:balls/b/0", "solimp:balls/a/0"]
    robots = {"balls": cs.load_robot(str(file))}
    world = cs.World(robots, contact=cs.Newton(), self_collision=True, parameters=names)
    texts = {name: " ".join(map(str, x)) for name, x in (("a", a), ("b", b), ("imp", imp))}
    data = mujoco.MjData(model := mujoco.MjModel.from_xml_string(BALLS.format(**texts)))
    for _ in range(10):
        mujoco.mj_step(model, data)
    params = {n: torch.tensor(v, dtype=D) for n, v in zip(names, (a, b, imp), strict=True)}
    found = world.rollout(world.initial_state(), torch.zeros(10, world.nu, dtype=D), params=params)[-1]
    assert abs(data.qvel[1]) > 1e-3
    np.testing.assert_allclose(found[[1, 8]].numpy(), data.qpos[[1, 8]], rtol=1e-9)
    np.testing.assert_allclose(found[[15, 21]].numpy(), data.qvel[[1, 7]], rtol=1e-8)


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no joint of that name; use arm/base, arm/hinge"):
        world_of(SOFT, ["solreflimit:elbow"])
    with pytest.raises(ValueError, match="no shape of that name; use ball/body/0, ground"):
        world_of(SOFT, ["solimp:wall"])
    pytest.importorskip("mujoco")
    file = tmp_path / "balls.xml"
    file.write_text(BALLS.format(a="0.02 1", b="0.02 1", imp="0.9 0.95 0.001 0.5 2"))
    with pytest.raises(ValueError, match="bring their own from a file; name one: 'solref:SHAPE'"):
        cs.World([cs.load_robot(str(file))], contact=cs.Newton(), self_collision=True, parameters=["solref"])
