"""Trials: a box lies on the palm and is to be turned by a quarter; when that has succeeded, and how well.

The protocol is that of Jin (2024), "Complementarity-free multi-contact modeling and optimization for dexterous manipulation":
cube of 50 mm and 100 g, friction 0.5, any yaw at the start, goal a quarter turn to either side of it, at most 500 steps of 0.1 s,
success if 1 - <q, q*>^2 < 0.04 in 20 steps running.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from costate.tasks.inhand.mujoco import Judge
from costate.tasks.inhand.planner import Planner
from costate.tasks.inhand.sensing import Sensing

CLOSE = 0.04
"""Value of 1 - <q, q*>^2 below which the object is at its goal: 23 degrees."""


@dataclass(frozen=True)
class Protocol:
    """Numbers of a trial."""

    size: float = 0.05
    """Edge of the cube [m]."""
    mass: float = 0.1
    """Mass of the cube [kg]."""
    friction: float = 0.5
    """Friction of everything that touches."""
    turn: float = 90.0
    """Angle by which the cube is to be turned, to either side [degrees]."""
    scatter: float = 0.005
    """Standard deviation of the place where the cube lies at first [m]."""
    steps: int = 500
    """Most steps of a trial."""
    running: int = 20
    """Steps running for which the cube has to be at its goal."""
    sensing: Sensing = field(default_factory=Sensing)
    """Errors of what the planner is told; the judge's verdict does not depend on them."""

    @property
    def thing(self) -> np.ndarray:
        """The cube as a prediction and a judge know it, (5,)."""
        return np.array([self.size] * 3 + [self.mass, self.friction])


@dataclass(frozen=True, eq=False)
class Trial:
    """Result of a trial."""

    number: int
    success: bool
    states: np.ndarray
    """States (steps + 1, nx)."""
    film: np.ndarray
    """States at a finer grid of times, for a replay."""
    goal: np.ndarray
    """Pose that was wanted (7,)."""
    errors: np.ndarray
    """Angle between cube and goal after each step [degrees]."""
    seconds: float
    """Processor time of one plan, mean over all but the first [s]."""

    @property
    def steps(self) -> int:
        """Number of steps that were made."""
        return len(self.errors)

    @property
    def error(self) -> float:
        """Angle between cube and goal at the end [degrees]."""
        return float(self.errors[-1])

    @property
    def distance(self) -> float:
        """Distance between cube and goal at the end [m]."""
        return float(np.linalg.norm(self.states[-1, :3] - self.goal[:3]))


def start_and_goal(planner: Planner, protocol: Protocol, number: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw a state to start from, and the pose that the cube is to have."""
    hand, random = planner.prediction.hand, np.random.default_rng((seed, number))
    place = np.array([*hand.place, hand.top + protocol.size / 2 + 0.001])
    offset = protocol.scatter * random.normal(size=2)
    yaw = random.uniform(-np.pi / 2, np.pi / 2)
    wanted = yaw + np.radians(protocol.turn) * random.choice([-1.0, 1.0])
    start = np.concatenate([place + np.array([*offset, 0.0]), about_z(yaw), hand.home])
    return start, np.concatenate([place, about_z(wanted)])


def about_z(angle: float) -> np.ndarray:
    """Return the quaternion xyzw of a turn about the vertical."""
    return np.array([0.0, 0.0, np.sin(angle / 2), np.cos(angle / 2)])


def run_trial(
    planner: Planner,
    protocol: Protocol = Protocol(),  # noqa: B008
    number: int = 0,
    seed: int = 0,
    tell: Callable[[int, float], None] = lambda step, error: None,
    known: np.ndarray | None = None,
) -> Trial:
    """Run one trial. known: the object as the planner knows it, if not as it is; tell: is called with step and error."""
    start, goal = start_and_goal(planner, protocol, number, seed)
    prediction, random = planner.prediction, np.random.default_rng((seed, number, 1))
    judge = Judge(prediction.hand, protocol.thing)
    judge.reset(start)
    planner.reset()
    known = protocol.thing if known is None else known
    states, targets, film, errors, seconds, running = [judge.state], [], [judge.state], [], 0.0, 0
    while len(errors) < protocol.steps and running < protocol.running:
        present = protocol.sensing.present(prediction, states, targets, known, random)
        begun = time.process_time()
        targets.append(present[7:] + planner.plan(present, goal, known).commands[0])
        seconds += time.process_time() - begun if errors else 0.0  # the first plan may compile
        film += judge.step(targets[-1], prediction.physics.dt)
        states.append(judge.state)
        cosine = min(abs(float(states[-1][3:7] @ goal[3:7])), 1.0)
        errors.append(float(np.degrees(2 * np.arccos(cosine))))
        running = running + 1 if 1 - cosine**2 < CLOSE else 0
        if states[-1][2] < prediction.hand.top - protocol.size:
            break  # it fell off the hand
        tell(len(errors), errors[-1])
    success = running >= protocol.running
    return Trial(
        number, success, np.array(states), np.array(film), goal, np.array(errors), seconds / max(len(errors) - 1, 1)
    )
