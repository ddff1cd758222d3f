"""The same scene and the same policy in MuJoCo."""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.tasks.insertion_motions import BORE, held, jam_depth, press

from costate.cli.main import main
from costate.tasks.insertion import (
    Disturbances,
    Insertion,
    InsertionOptions,
    InsertionTraining,
    Policy,
    draw,
    judge,
    run,
)
from costate.tasks.insertion.guidance import calibration
from costate.tasks.insertion.guidance.guided import GuidedPolicy
from costate.tasks.insertion.guidance.steering import moments
from costate.tasks.insertion.scene import DEPTH, MOUTH_HEIGHT
from costate.tasks.insertion.training import ALONE
from costate.train.run import Run

pytest.importorskip("mujoco")
import mujoco

from costate.tasks.insertion.mujoco.scene import FACETS, MujocoScene, run_in_mujoco
from costate.tasks.insertion.mujoco.transfer import failures

D = torch.float64
ROUNDING = 1e-10
"""Of states after 40 control steps without contact; measured: 1e-14."""
SOFT = 2e-4
"""By how much MuJoCo lets shapes overlap under load [m]."""
EPISODES = 24
POLICY = Path(__file__).parents[1] / "data" / "insertion" / "policy.safetensors"
"""Of a training without a guide and without limits of acceleration and jerk."""
UNLIMITED = InsertionOptions().unlimited()


@pytest.fixture(scope="module")
def task() -> Insertion:
    return Insertion(InsertionOptions(moving=True))


@pytest.fixture(scope="module")
def scene(task: Insertion) -> MujocoScene:
    return MujocoScene(task)


def policy() -> Policy:
    found = Policy()
    found.load_state_dict(
        {k.removeprefix("network."): v.float() for k, v in load_file(POLICY).items() if k.startswith("network.")}
    )
    return found


# --- the scene --------------------------------------------------------------------------------------------------------


def test_facets_do_not_narrow_the_bore(scene: MujocoScene) -> None:
    """Rays from the axis meet the wall at the bore's radius or, towards the corners of its facets, beyond."""
    scene._set(np.zeros(18))
    mujoco.mj_forward(scene.model, scene.data)
    hit, found = np.zeros(1, np.int32), []
    for angle in np.linspace(0, 2 * math.pi, 997):
        for depth in (0.001, 0.03, 0.059):
            start, ray = np.array([0, 0, MOUTH_HEIGHT - depth]), np.array([math.cos(angle), math.sin(angle), 0])
            groups = np.array([1, 0, 0, 0, 0, 0], np.uint8)  # what may touch
            found.append(mujoco.mj_ray(scene.model, scene.data, start, ray, groups, 1, -1, hit, None))
    assert FACETS >= 64
    assert min(found) > BORE - 1e-9
    assert max(found) < BORE / math.cos(math.pi / FACETS) + 1e-9


def test_inertias_are_the_same(task: Insertion, scene: MujocoScene) -> None:
    q = task.sample(1, torch.Generator().manual_seed(0), D)[0]
    scene._set(q.numpy())
    mujoco.mj_forward(scene.model, scene.data)
    np.testing.assert_allclose(scene._mass_matrix(), task.arm.mass_matrix(q[:6]).numpy(), rtol=0, atol=1e-9)
    weight = task.arm.bias_forces(q[:6], torch.zeros(6, dtype=D)).numpy()
    np.testing.assert_allclose(scene._weight(), weight, rtol=0, atol=1e-9)


@pytest.mark.parametrize("actuation", ["velocity", "torque"])
def test_motions_are_the_same_while_nothing_touches(actuation: str) -> None:
    """Servos at their limits, gravity, another payload that they do not know, noise, latency, a conveyor that changes its speed."""
    task = Insertion(InsertionOptions(moving=True, actuation=actuation, hold=0))  # pyright: ignore[reportArgumentType]
    disturbances = Disturbances(0.01, 0.1, 1e-3, 1e-3, 0.2, 0.5, latency=1, belt_change=0.1)
    random = torch.Generator().manual_seed(1)
    episodes = draw(task, 3, random, disturbances, D)
    wave = torch.randn(6, generator=random, dtype=D)

    def controller(observation: torch.Tensor) -> torch.Tensor:
        """Back and forth, in steps that the servos cannot follow."""
        size = 0.4 if actuation == "velocity" else 0.002
        return size * (torch.sin(40 * observation[..., -1:] + wave).sign() + 0.1 * observation[..., :6])

    with torch.no_grad():
        ours = run(task, task.smooth_payload, controller, episodes).states
        theirs = run_in_mujoco(task, MujocoScene(task), controller, episodes)
    assert float((ours[-1] - ours[0]).abs().max()) > 0.02 and float(theirs.measured["penetration"].max()) == 0
    torch.testing.assert_close(ours, theirs.states, rtol=0, atol=ROUNDING)


def test_a_straight_bottle_enters_and_others_jam(task: Insertion, scene: MujocoScene) -> None:
    """As in our world: see tests/tasks/test_insertion.py."""
    starts = [held(task), held(task, 0.003), held(task, tilt=math.radians(5.0))]
    path = press(task, scene, torch.stack(starts))
    position, tilt, _ = task.errors(path[-1])
    height = position[:, 2].tolist()
    assert abs(height[0]) < SOFT and abs(height[1] - DEPTH) < SOFT
    depth = DEPTH - height[2]
    assert jam_depth(float(tilt[2])) - 1e-3 < depth < jam_depth(float(tilt[2]), SOFT) + 1e-3


# --- the policy -------------------------------------------------------------------------------------------------------


def test_a_policy_transfers(tmp_path: Path) -> None:
    """Trained in our world without contact; judged in ours with contact, and in MuJoCo."""
    folder = Run.create(tmp_path / "run", Insertion(UNLIMITED), ALONE, policy().state_dict())
    assert main(["transfer", str(folder.path), "--episodes", str(EPISODES), "--mjcf"]) == 0
    found = json.loads((folder.path / "transfer.json").read_text())
    for engine in ("ours", "mujoco", "ours_fine", "mujoco_fine"):
        assert found[engine]["episodes"] == EPISODES
        assert found[engine]["success"] > 0.9
        assert found[engine]["error_mean"] < 0.3
    assert found["agree"] > 0.9
    assert found["apart"] < 1e-6  # mm
    mujoco.MjModel.from_xml_path(str(folder.path / "scene.xml"))


def test_failures_are_explained() -> None:
    met: Any = SimpleNamespace(kept_place=1.0, kept_still=1.0, no_penetration=1.0, within_limits=1.0)
    assert failures(met) == "episodes that fail are not seated in time"
    met.kept_still, met.within_limits = 0.0, 0.99
    assert failures(met) == "100.0 % do not stay at rest, 1.0 % pass a limit of a joint"


@pytest.mark.parametrize("latency", [0, 2])
def test_a_recording_teaches_how_torque_servos_answer(monkeypatch: pytest.MonkeyPatch, latency: int) -> None:
    """Noise and latency are in the recording; the model is then tried on another one, which has neither."""
    monkeypatch.setattr(calibration, "RUNS", 12)
    task = Insertion(InsertionOptions().robust())
    guided = task.policy(InsertionTraining(hidden=8), torch.Generator().manual_seed(0))
    servos, noise = MujocoScene(task, 16, explicit=True), replace(task.options.disturbances, latency=latency)
    recording = calibration.record(task, servos, torch.Generator().manual_seed(1), noise)
    quiet = calibration.record(task, servos, torch.Generator().manual_seed(2), Disturbances())
    assert isinstance(guided, GuidedPolicy)

    def missed(policy: GuidedPolicy) -> tuple[float, float]:
        none = torch.zeros_like(quiet.q[:-1, :, :1])
        q, v = policy.double().guide.predict(quiet.q[:-1], quiet.v[:-1], quiet.commands, none)
        return float((q - quiet.q[1:]).square().mean().sqrt()), float((v - quiet.v[1:]).square().mean().sqrt())

    before, after = missed(guided), missed(calibration.calibrated(guided, recording))
    assert after[0] < 0.8 * before[0] and after[1] < 0.15 * before[1]
    # And commands: what is asked for comes about as before.
    wanted = 0.1 * torch.randn(quiet.v[0].shape, generator=torch.Generator().manual_seed(3), dtype=D)
    q, v, none, off = quiet.q[5], quiet.v[5], torch.zeros_like(quiet.q[0, :, :1]), []
    for guide in (guided.guide, calibration.calibrated(guided, recording).guide):
        command = v + moments(q - guide.middle, v, wanted, none) @ guide.inverse
        off.append(float((guide.predict(q, v, command, none)[1] - v - wanted).abs().max()))
    assert off[1] < 1.2 * off[0] < 0.03 * 0.1


def test_nothing_else_transfers() -> None:
    """An untrained policy fails in both engines, so success above means something."""
    task = Insertion()
    episodes = draw(task, 2, torch.Generator().manual_seed(0), dtype=D)
    untrained = Policy(generator=torch.Generator().manual_seed(0)).double()
    assert not judge(task, run_in_mujoco(task, MujocoScene(task), untrained, episodes)).success.any()


def test_robustness(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Run.create(tmp_path / "run", Insertion(UNLIMITED), ALONE, policy().state_dict())
    assert main(["robustness", str(folder.path), "--episodes", "64"]) == 0
    rows = {row["case"]: row for row in json.loads((folder.path / "robustness.json").read_text())}
    printed = capsys.readouterr().out
    assert all(name in printed for name in rows)
    usual = rows["nothing changed"]
    assert usual["success"] > 0.9
    # What the arm is not told of moves it; friction it does not meet does not.
    assert rows["payload +20 %"]["error_mean"] > 1.05 * usual["error_mean"]
    assert rows["latency of 2 steps"]["success"] < usual["success"]
    assert abs(rows["friction +50 %"]["success"] - usual["success"]) < 0.1
