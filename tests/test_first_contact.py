"""Mistakes of a first hour with the library: each is said in the user's words, with what to do instead."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import costate as cs
from costate.core import guesses

ROBOT = cs.load_robot("two_link")
WORLD = cs.World([cs.load_robot("two_link")], contact=None)
Q = torch.zeros(2, dtype=torch.float64)
X = WORLD.initial_state()
LIKE: Any = cs  # as a user without a type checker sees it
BALL = cs.shapes.sphere(0.1)

MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a name for a robot": (lambda: LIKE.Robot("ur5"), TypeError, r"'ur5'.*cs\.load_robot"),
    "a robot of a robot": (lambda: LIKE.Robot(ROBOT), TypeError, r"takes a model.*cs\.load_robot"),
    "nothing to load": (lambda: LIKE.load_robot(None), TypeError, "name or the path of a file.*NoneType"),
    "capitals": (lambda: cs.load_robot("UR5"), ValueError, "did you mean 'ur5'"),
    "gravity as a number": (lambda: LIKE.load_robot("two_link", gravity=-9.81), ValueError, "vector of 3"),
    "words for a state": (
        lambda: LIKE.World.step(WORLD, "home"),
        TypeError,
        "state is the name 'home'; expected a torch",
    ),
    "words for a configuration": (lambda: ROBOT.integrate("home", Q), TypeError, "'q' is a str; expected a torch"),  # type: ignore
    "a wrench without link": (
        lambda: ROBOT.forward_dynamics(Q, Q, Q, torch.zeros(6)),  # type: ignore[arg-type]
        TypeError,
        "link -> wrench.*endEffector",
    ),
    "a matrix for a pose": (lambda: ROBOT.inverse_kinematics(np.eye(4), "arm2"), TypeError, r"cs\.Pose"),  # type: ignore
    "a class to learn with": (
        lambda: ROBOT.learn("arm2", "mass", cs.params.Positive),  # type: ignore[arg-type]
        TypeError,
        r"such as cs\.params\.Positive\(\); given is the class",
    ),
    "a number to learn with": (lambda: ROBOT.learn("arm2", "mass", 3.0), TypeError, "given is 3.0"),  # type: ignore
    "a function to augment with": (lambda: ROBOT.augment(lambda q, v: q), TypeError, "is an nn.Module"),  # type: ignore
    "timestep for dt": (
        lambda: LIKE.World([ROBOT], timestep=0.01),
        TypeError,
        "no argument 'timestep'; did you mean 'dt'",
    ),
    "a robot for robots": (lambda: LIKE.World(robot=ROBOT), TypeError, "did you mean 'robots'"),
    "fixed for floating": (lambda: LIKE.load_robot("two_link", fixed_base=True), TypeError, "floating_base=False"),
    "no steps": (lambda: LIKE.World.rollout(WORLD, X), ValueError, "needs controls.*steps="),
    "half a step": (lambda: LIKE.World.rollout(WORLD, X, steps=2.5), TypeError, "whole number"),
    "steps that disagree": (lambda: WORLD.rollout(X, torch.zeros(3, 2), steps=4), ValueError, "steps=4.*3 steps"),
    "a link of nobody": (lambda: WORLD.link_pose(X, "arm3"), ValueError, "no link 'arm3'; did you mean.*arm2"),
    "a link for a body": (lambda: WORLD.body_pose(X, "arm2"), ValueError, "no body 'arm2'.*world.link_pose"),
    "a seed and a generator": (
        lambda: ROBOT.random_configuration(seed=1, generator=torch.Generator()),
        ValueError,
        "seed and generator",
    ),
    "one robot": (lambda: LIKE.World(ROBOT), TypeError, r"list of robots: \[robot\]"),
    "names of robots": (lambda: LIKE.World(["ur5"]), TypeError, r'cs\.load_robot\("ur5"\)'),
    "a model for a robot": (lambda: LIKE.World([ROBOT.model]), TypeError, r"cs\.Robot\(model\)"),
    "a shape as scenery": (lambda: LIKE.World(scenery=[BALL]), TypeError, r"Shape in it.*cs\.Static\("),
    "one body": (lambda: LIKE.World(bodies=cs.Body("b", [BALL], 1.0)), TypeError, r"list of cs\.Body"),
    "one shape of a body": (lambda: LIKE.World(bodies=[LIKE.Body("b", BALL, 1.0)]), TypeError, r"list.*\[shape\]"),
    "no mass": (lambda: cs.World(bodies=[cs.Body("b", [BALL], 0.0)]), ValueError, "mass 0.0; expected a positive"),
    "sizes one by one": (lambda: LIKE.shapes.box(1, 2, 3), ValueError, r"one list: box\(\(x, y, z\)\)"),
    "the class of an actuator": (lambda: LIKE.World([ROBOT], actuators=cs.Torque), TypeError, r"Torque\(\)"),
    "a parameter without list": (lambda: cs.World([ROBOT], parameters="friction"), TypeError, r"\['friction'\]"),
    "a pose of nobody": (lambda: LIKE.World([ROBOT], poses={"ur5": None}), ValueError, "robots are two_link"),
    "a pose in words": (lambda: LIKE.World([ROBOT], poses={"two_link": "above"}), TypeError, "(x, y, z)"),
    "gravity of a world": (lambda: LIKE.World([ROBOT], gravity=-9.81), ValueError, "vector of 3"),
    "half a substep": (lambda: LIKE.World([ROBOT], substeps=2.5), TypeError, "whole number"),
    "a step in words": (lambda: LIKE.World([ROBOT], dt="0.01"), TypeError, "number of seconds"),
    "half a batch": (lambda: WORLD.initial_state(2.5), TypeError, "whole number"),  # type: ignore[arg-type]
    "steps for controls": (lambda: WORLD.rollout(X, 100), TypeError, "controls is an int.*steps=100"),  # type: ignore[arg-type]
    "batch before time": (
        lambda: WORLD.rollout(WORLD.initial_state(5), torch.zeros(5, 10, 2, dtype=torch.float64)),
        ValueError,
        r"time comes first, \(T, 5, 2\)",
    ),
    "one state to diagnose": (lambda: cs.diagnose(WORLD, X), ValueError, "expected those of a rollout"),
    "numbers to check": (lambda: LIKE.gradcheck(torch.sin, [1.0]), TypeError, r"torch\.tensor\(1\.0\)"),
    "a robot to view by name": (lambda: cs.view("ur5", block=False), ValueError, r"cs\.load_robot"),
}


GUESSES: dict[str, tuple[Any, str]] = {
    "dof": (ROBOT, "nv"),
    "fk": (ROBOT, "forward_kinematics"),
    "ik": (ROBOT, "inverse_kinematics"),
    "links": (ROBOT, "link_names"),
    "forward_kinematic": (ROBOT, "forward_kinematics"),
    "reset": (WORLD, "initial_state"),
    "timestep": (WORLD, "dt"),
    "simulate": (WORLD, "rollout"),
    "rolout": (WORLD, "rollout"),
    "load_urdf": (LIKE, "load_robot"),
    "Simulator": (LIKE, "World"),
    "load_robots": (LIKE, "load_robot"),
}
"""Name that a user may guess -> where, and what it is called."""


@pytest.mark.parametrize("name", GUESSES)
def test_guessed_names(name: str) -> None:
    owner, meant = GUESSES[name]
    assert not hasattr(owner, name) and hasattr(owner, meant)
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; did you mean '{meant}'"):
        getattr(owner, name)


@pytest.mark.parametrize(
    ("table", "owner"),
    [(guesses.ROBOT, ROBOT), (guesses.WORLD, WORLD), (guesses.COSTATE, cs)],
    ids=["ROBOT", "WORLD", "cs"],
)
def test_guesses_lead_somewhere(table: dict[str, str], owner: Any) -> None:
    """What is meant exists, and what is guessed does not."""
    for guess, meant in table.items():
        assert not hasattr(owner, guess), f"{guess} exists: its row can go"
        found: Any = cs if meant.startswith("cs.") else owner
        for part in re.split(r"[.,] ?", re.sub(r"\([^)]*\)", "", meant).removeprefix("cs.").split(",")[0]):
            found = getattr(found, part)


@pytest.mark.parametrize(("table", "function"), [(guesses.LOAD_ROBOT, cs.load_robot), (guesses.MAKE_WORLD, cs.World)])
def test_guessed_arguments_lead_somewhere(table: dict[str, str], function: Any) -> None:
    known = inspect.signature(function).parameters
    for guess, meant in table.items():
        assert guess not in known and re.match(r"\w+", meant)[0] in known, guess  # type: ignore[index]


def test_objects_that_suggest_names_are_copied_and_pickled() -> None:
    for thing in (ROBOT, WORLD):
        for other in (copy.copy(thing), copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))):
            assert other.nq == thing.nq and not hasattr(other, "dof")
    assert ROBOT.learnt is ROBOT._modules["learnt"]
    twin = copy.deepcopy(ROBOT)
    assert twin.learnt is twin._modules["learnt"] is not ROBOT.learnt


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_said_clearly(mistake: str) -> None:
    call, kind, message = MISTAKES[mistake]
    with pytest.raises(kind, match=message):
        call()


def test_one_control_per_sample_is_no_mistake() -> None:
    """As many steps as samples: nothing can be said about the order."""
    states = WORLD.rollout(WORLD.initial_state(3), torch.zeros(3, 3, 2, dtype=torch.float64))
    assert states.shape == (4, 3, 4)


def test_a_path_is_no_mistake(tmp_path: Path) -> None:
    ROBOT.save_urdf(tmp_path / "robot.urdf")
    assert cs.load_robot(tmp_path / "robot.urdf").nq == 2
