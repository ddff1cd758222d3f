"""The hand in MuJoCo beside our world, from the same states: robot alone, fingers on the floor, a cube in the hand."""

from dataclasses import replace
from functools import cached_property

import pytest
import torch

from costate.sim.contact.newton.weights import inverse_weights
from costate.tasks.manipulation.kinds import Grasp
from costate.tasks.manipulation.mujoco import MujocoHand
from costate.tasks.manipulation.options import ManipulationOptions, honest

pytest.importorskip("mujoco")
BATCH = 8
GRIP = [
    -0.102, -1.663, 1.946, 0.146, 1.312, -0.105, -0.19, -0.246, -0.232, 0.678, 0.3, 0.295, -0.319, 0.727, 0.431, 0.422,
    0.147, 0.759, 0.35, 0.345, 0.132, -0.143, 0.816, 0.33, 0.337, -0.08, 1.028, -0.034, -0.435, -0.616,
    -0.016, -0.015, 0.055, 0.063, -0.017, -0.272, 0.96,
]  # fmt: skip
"""Joints and object in the middle of a lift."""
TARGET = [
    -0.102, -1.663, 1.946, 0.146, 1.312, -0.105, -0.232, -0.404, -0.17, 0.891, 0.272, 0.255, -0.267, 0.951, 0.452, 0.425,
    0.206, 0.898, 0.359, 0.353, 0.193, -0.076, 0.944, 0.382, 0.384, -0.156, 1.005, -0.081, -0.578, -0.768,
]  # fmt: skip
"""Targets that press the fingers against it while the arm stands still."""


class Both:
    """One control step of a single physics step, in both."""

    def __init__(self):
        o = honest(ManipulationOptions())
        self.task = Grasp(replace(o, dt=0.002, servos=replace(o.servos, substeps=1)))
        self.world, self.mujoco, self.n = self.task.world, MujocoHand(self.task), self.task.step.nq
        self.episodes = self.task.draw(BATCH, torch.Generator().manual_seed(1), torch.float64)
        self.params = {k: v for k, v in self.episodes.params.items() if k in self.world.setup.parameters}

    def apart(self):
        """Return states in which hand and object are far from each other, and random numbers for joints."""
        state = self.episodes.state.clone()
        state[:, self.n] += 1.0
        state[:, self.n + 2] -= 1e-4  # whether it touches is not left to rounding
        return state, torch.randn(3, BATCH, self.n, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def errors(self, state, control):
        """Return the differences of positions and of velocities after a step."""
        ours, theirs = (w.step(state, control, self.params) for w in (self.world, self.mujoco))
        split = self.n + 7
        return [float(x.abs().max()) for x in ((ours - theirs)[:, :split], (ours - theirs)[:, split:])]

    @cached_property
    def softness(self):
        """Inverse weights of MuJoCo's bodies as our model has them, at home: MuJoCo's own are at joint angles of zero."""
        m, scene = self.mujoco.model, self.world.setup.scene.model
        bodies = {f"hand/{m.body(i).name}": i for i in range(m.nbody)} | {"object/body": m.body("object").id}
        bodies = {name: bodies[name] for name in (link.name for link in scene.links) if name in bodies}
        own = inverse_weights(scene, [*bodies])
        return {i: own.links[name] for name, i in bodies.items()}, own.coordinates

    def soften(self):
        """Give MuJoCo's model the inverse weights of ours."""
        of_bodies, of_joints = self.softness
        for i, weights in of_bodies.items():
            self.mujoco.model.body_invweight0[i] = weights
        self.mujoco.model.dof_invweight0[:] = of_joints


@pytest.fixture(scope="module")
def both():
    return Both()


@pytest.fixture
def alike(both, monkeypatch):
    """Return both, with the same softness."""
    own = both.mujoco._set
    monkeypatch.setattr(both.mujoco, "_set", lambda params: (own(params), both.soften()))
    return both


@pytest.mark.parametrize("far", [1e-4, 0.1])
def test_the_robot_alone_moves_the_same(alike, far):
    """Dynamics, weights, joint friction and limits, and servos: within their torque limits, and (far) beyond most of them."""
    both = alike
    state, drawn = both.apart()
    state[:, 1] -= 0.5  # well above the floor
    state[:, : both.n] += 0.05 * drawn[0]
    state[:, both.n + 7 : 2 * both.n + 7] = 0.3 * drawn[1]
    assert max(both.errors(state, state[:, : both.n] + far * drawn[2])) < 1e-5


def test_fingers_on_the_floor_are_pushed_the_same(alike):
    """Contacts of capsules and a plane have the same points, friction and forces."""
    both = alike
    state, drawn = both.apart()
    state[:, 1] += 0.11 + 0.002 * drawn[0, :, 0]
    state[:, both.n + 7 : 2 * both.n + 7] = 0.1 * drawn[1]
    assert max(both.errors(state, state[:, : both.n])) < 1e-5
    assert both.mujoco.data.ncon > 4  # the cube alone has four


def test_a_cube_stays_in_the_hand_in_both(both):
    """A grip for a quarter of a second: the cube does not fall (0.3 m), and is at the same place in both."""
    state = both.episodes.state.clone()
    state[:, : both.n + 7] = torch.tensor(GRIP)
    target = torch.tensor(TARGET, dtype=state.dtype).expand(BATCH, -1)
    found = []
    for world in (both.world, both.mujoco):
        x = state
        for _ in range(125):
            x = world.step(x, target, both.params)
        found.append(x[0, both.n : both.n + 3])
    assert float((found[0] - found[1]).norm()) < 1e-3
    assert float((found[0] - state[0, both.n : both.n + 3]).norm()) < 0.01
