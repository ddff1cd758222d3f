"""The validation scenes (docs/validation.md): short versions, and the whole ones as studies.

Known answers: boxes at rest stay, an arch stands where statics lets it, a cube is lost at the friction of the closed form. Another
engine: throws at pins, an ant and a humanoid in MuJoCo.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
from benchmarks.validation import arch, bowling, gripper, robots, stack
from benchmarks.validation.twins import Comparison

SAME = 1e-6
"""Of states of both engines, after a tenth of a second in which neither chaos nor MuJoCo's tolerance (1e-8) has grown."""
UNLIKELY = 1e-3
"""Samples of one distribution differ more once in a thousand times."""
RESTS = "Newton, elliptic, 2 ms"


# --- a stack --------------------------------------------------------------------------------------------------------


def check_stack(name: str, boxes: int, seconds: float) -> None:
    motion = stack.rest(stack.SETTINGS[name], seconds, boxes)
    assert motion.creep.max() < stack.ALLOWED
    assert motion.settling < stack.ALLOWED  # soft contact sinks in by less than what it may creep


def test_stack() -> None:
    check_stack(RESTS, 4, 3.0)


@pytest.mark.study
def test_ten_boxes_for_a_minute() -> None:
    check_stack(RESTS, 10, 60.0)


# --- an arch --------------------------------------------------------------------------------------------------------


def test_statics_of_an_arch() -> None:
    """The thinnest arch that can stand (Milankovitch, 1907)."""
    assert arch.critical_thickness(100) == pytest.approx(0.1075, abs=5e-4)


def check_arch(stones: int, model: str, shares: tuple[float, ...], seconds: float, folder: Path) -> None:
    """Whole with friction 0.8 and with shares of the least friction, and without a stone: as statics says."""
    own = arch.Arch(stones)
    least = arch.critical_friction(own)
    cases = [(arch.FRICTION, None), (arch.FRICTION, stones // 2), *((share * least, None) for share in shares)]
    world, state = arch.build(own, folder, *arch.MODELS[model])
    fate = arch.watch(own, world, state, cases, seconds)
    assert fate.fell.tolist() == [not arch.can_stand(own, *case) for case in cases]
    assert fate.fell.any() and not fate.fell.all()
    assert fate.moved[-1, 0] < 0.01  # one that stands hardly moves


def test_arch(tmp_path: Path) -> None:
    check_arch(3, "Hard", (0.7,), 1.5, tmp_path)


@pytest.mark.study
@pytest.mark.parametrize("model", arch.MODELS)
def test_arch_for_ten_seconds(model: str, tmp_path: Path) -> None:
    check_arch(7, model, (1.5, 0.95, 0.7), 10.0, tmp_path)


# --- a gripper ------------------------------------------------------------------------------------------------------


def check_gripper(model: str) -> None:
    world = gripper.gripper(model)
    assert gripper.critical_friction(world, rounds=3) == pytest.approx(gripper.CRITICAL, rel=0.02)
    falls = gripper.try_frictions(world, gripper.CRITICAL * np.array([0.5, 1.5]))
    assert falls.pressure == pytest.approx(gripper.FORCE / 2, rel=1e-3)
    free = gripper.GRAVITY * (1 - 0.5) * gripper.HOLD**2 / 2  # half of its weight is carried
    short = falls.times < 0.1  # before it has left the pads
    expected = free * (falls.times / gripper.HOLD) ** 2
    np.testing.assert_allclose(falls.fallen[short, 0], expected[short], rtol=0, atol=5e-3)


def test_gripper() -> None:
    check_gripper("Hard")


@pytest.mark.study
@pytest.mark.parametrize("model", gripper.MODELS)
def test_every_model_loses_the_cube_where_it_should(model: str) -> None:
    check_gripper(model)


# --- bowling --------------------------------------------------------------------------------------------------------


def check_bowling(pins: int, count: int, seconds: float) -> tuple[bowling.Outcome, bowling.Outcome]:
    twins = bowling.alley(pins)
    start = bowling.throws(twins, count)
    few = np.zeros((bowling.EVERY, count, 0))
    near = twins.difference(
        twins.run_ours(start, few, bowling.EVERY)[-1], twins.run_theirs(start, few, bowling.EVERY)[-1]
    )
    assert near.max() < SAME
    ours, theirs = (bowling.bowl(twins, start, engine, seconds) for engine in ("ours", "theirs"))
    assert Comparison(ours.down, theirs.down).p > UNLIKELY
    assert Comparison(ours.speed, theirs.speed).p > UNLIKELY
    assert 0 < ours.down.mean() < pins
    return ours, theirs


def test_bowling() -> None:
    ours, theirs = check_bowling(3, 32, 1.0)
    assert (ours.down == theirs.down).mean() > 0.9  # few pins, few impacts: not chaotic yet


@pytest.mark.study
def test_thousand_throws() -> None:
    """And a comparison that notices balls of half the speed."""
    _, theirs = check_bowling(10, 1000, bowling.SECONDS)
    twins = bowling.alley(10)
    slow = bowling.bowl(twins, bowling.throws(twins, 100, seed=1, speed=(2.0, 4.0)), "ours")
    assert Comparison(slow.speed, theirs.speed).p < UNLIKELY


# --- an ant, a humanoid ---------------------------------------------------------------------------------------------


def check_robot(name: str, count: int, seconds: float) -> None:
    found = robots.episodes(name, robots.robot(name), count, seconds)
    assert np.median(found.moments) < SAME
    for key, compared in found.compare(seconds / 2).items():
        assert compared.p > UNLIKELY, key
        assert abs(compared.apart) < 4, key
    forces = found.ours["contact force, N"]
    assert (forces[-1] > 1.0).any()  # they lie or stand on the ground
    np.testing.assert_allclose(found.ours["energy, J"][0], found.theirs["energy, J"][0], rtol=1e-9)


def test_ant() -> None:
    check_robot("ant", 8, 1.5)


@pytest.mark.study
@pytest.mark.parametrize("name", robots.CASES)
def test_robots_for_ten_seconds(name: str) -> None:
    check_robot(name, 128, 10.0)
