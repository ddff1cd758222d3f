"""The integrators that MJCF files ask for, with the Newton contact model: one step against MuJoCo's."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients

import costate as cs

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
from tests.sim.mujoco_states import Twin, random_rotation, same_sign  # noqa: E402

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
AGREES = 1e-6
"""Of changes of a state in a step, relative to the largest."""

MJCF = """
<mujoco>
  <option timestep="0.005" integrator="{integrator}"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="hull" pos="0 0 0.2"><freejoint/><geom type="capsule" size="0.1 0.1" mass="2"/>
      <body name="arm" pos="0.2 0 0"><joint name="a" axis="0 1 0" damping="0.5"/><geom size="0.05" pos="0.2 0 0" mass="1"/>
        <body name="hand" pos="0.2 0 0"><joint name="b" axis="1 0 1" damping="0.2"/>
          <geom size="0.03" pos="0 0.1 0.1" mass="0.5"/></body></body></body>
  </worldbody>
  <tendon><fixed name="belt" damping="0.3" stiffness="5"><joint joint="a" coef="1"/><joint joint="b" coef="-0.7"/></fixed></tendon>
  <actuator>
    <velocity joint="a" kv="0.4" forcerange="-0.2 0.2"/><position tendon="belt" kp="3" kv="0.2"/><motor joint="b"/>
  </actuator>
</mujoco>
"""


def pair(path: Path) -> Twin:
    """Both engines with the integrator and the actuators of the file."""
    model = mujoco.MjModel.from_xml_path(str(path))
    option = model.opt
    option.tolerance, option.iterations, option.ls_iterations, option.ls_tolerance = 0.0, 100, 100, 1e-10
    option.solver = 2  # Newton
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left out
        robot = cs.load_robot(path)
    floor = [cs.Static("floor", shape) for shape in robot.model.links[0].collisions if robot.model.floating_base]
    world = cs.World(
        {"robot": robot}, scenery=floor, contact=cs.Newton(), actuators="file", self_collision=True, check=False
    )
    return Twin(world, model, mujoco.MjData(model))


def check_steps(twin: Twin, count: int, fall: float) -> None:
    """From random states that fall onto the floor for some time [s] at most."""
    m, d, random = twin.model, twin.data, np.random.default_rng(0)
    x, u, y, touching = [], [], [], 0
    for k in range(count):
        mujoco.mj_resetData(m, d)
        for i, _ in twin.free_joints():
            d.qpos[i + 3 : i + 7] = random_rotation(random)
        d.qvel[:] = random.normal(size=m.nv)
        for _ in range(round(k / count * fall / m.opt.timestep)):
            mujoco.mj_step(m, d)
        d.ctrl[:] = random.uniform(-1, 1, m.nu)
        mujoco.mj_forward(m, d)
        touching += d.ncon > 0
        x.append(twin.state())
        u.append(d.ctrl.copy())
        mujoco.mj_step(m, d)
        y.append(twin.state())
    assert touching > count / 4
    x, u, y = (np.array(v) for v in (x, u, y))
    ours = same_sign(twin, twin.world.step(torch.tensor(x), torch.tensor(u)).numpy(), y)
    assert (np.abs(ours - y) / np.abs(y - x).max(1, keepdims=True)).max() < AGREES


@pytest.mark.parametrize("integrator", ["RK4", "implicitfast", "implicit"])
def test_small_robot(tmp_path: Path, integrator: str) -> None:
    """A body that spins, hits the floor and slides; damped joints, a damped tendon, servos that saturate."""
    path = tmp_path / "robot.xml"
    path.write_text(MJCF.format(integrator=integrator))
    twin = pair(path)
    assert twin.world.setup.integrator == {"RK4": "rk4"}.get(integrator, "implicit")
    check_steps(twin, 40, 0.6)
    if integrator == "RK4":
        x = torch.tensor(twin.state())
        x[2] = 0.5  # in the air: impacts are not smooth
        u = torch.tensor([0.1, 0.3, -0.2], dtype=torch.float64)
        check_gradients(lambda x, u: twin.world.step(x, u), (x, u), names=("state", "control"), float32=False)


@pytest.mark.study
@pytest.mark.parametrize("name", ["ant", "hopper"])
def test_robots_of_gymnasium(name: str) -> None:
    twin = pair(ASSETS / f"{name}.xml")
    assert twin.world.setup.integrator == "rk4"
    check_steps(twin, 40, 1.0)


@pytest.mark.filterwarnings("ignore:robot. its file")
def test_choices(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(MJCF.format(integrator="implicit"))
    slow = cs.load_robot(path)
    path.write_text(MJCF.format(integrator="Euler"))
    euler = cs.load_robot(path)
    assert cs.World([slow]).setup.integrator == "semi_implicit"  # of other contact models
    assert cs.World([slow], contact=cs.Newton(), integrator="rk4").setup.integrator == "rk4"
    assert cs.World([euler], contact=cs.Newton()).setup.integrator == "euler"
    with pytest.raises(ValueError, match=r"integrators \['Euler', 'implicit'\]: choose one"):
        cs.World({"a": slow, "b": euler}, contact=cs.Newton())
    with pytest.raises(ValueError, match="no explicit integrator"):
        cs.World([euler], contact=cs.Newton(), integrator="explicit")
