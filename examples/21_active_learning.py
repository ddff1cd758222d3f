"""Learn a robot's parameters in rounds: each motion is designed for what the data so far leave uncertain.

    python examples/21_active_learning.py [--rounds 4]

A UR5 (simulated, with friction and other masses than in its file) moves for 6 s per round in a small part of its workspace, each
joint with two harmonics only: no single motion of that kind shows everything well. After every round the parameters are identified
from all that was logged so far, and `cs.excite(..., after=result)` designs the next motion from their covariance. Beside it, the
first motion is repeated as often: as much data, but always the same.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

import costate as cs

torch.set_default_dtype(torch.float64)
RATE, PERIOD, NOISE = 50, 6.0, 0.05  # samples per second, s, N m
CENTRE = [0.0, -1.6, 1.6, -1.6, -1.6, 0.0]
NEW, SAME = "designed from what is known", "the first one again"
DESIGN = {"period": PERIOD, "margin": 0.3, "harmonics": 2, "centre": CENTRE, "restarts": 1, "iterations": 40}


def real_robot() -> cs.Robot:
    """Make a robot with heavier links than in the file, and joints with damping, friction and rotors."""
    robot = cs.load_robot("ur5")
    for link in ("upper_arm_link", "forearm_link", "wrist_1_link"):
        mass = robot.model.link(link).inertia.mass
        robot.learn(link, "mass", cs.params.Positive(init=[1.2 * mass]))
    for joint in robot.joint_names:
        for parameter, value in (("damping", 0.4), ("friction", 0.6), ("armature", 0.03)):
            robot.learn(joint, parameter, cs.params.Positive(init=[value]))
    return robot


def record(robot: cs.Robot, motions: list, seed: int) -> dict[str, np.ndarray]:
    """Play motions one after the other; all begin and end at rest in the same place. Returns the log."""
    parts = [motion.sample(RATE) for motion in motions]
    log = {name: np.concatenate([part[name] for part in parts]) for name in ("q", "v", "a")}
    with torch.no_grad():
        q, v, a = (torch.as_tensor(log[name]) for name in ("q", "v", "a"))
        tau = robot.inverse_dynamics(q, v, a).numpy()
    tau = tau + NOISE * np.random.default_rng(seed).normal(size=tau.shape)
    return {"t": np.arange(len(tau)) / RATE, **log, "tau": tau}


def doubt(result) -> tuple[float, float]:
    """Return the mean logarithm of the axes of the confidence region, and the error of predicted torques in new motions [N m]."""
    size = float(np.linalg.slogdet(result.covariance)[1]) / 2 / result.base.rank
    random = np.random.default_rng(100)
    draws = np.array(CENTRE) + random.uniform(-1, 1, (200, 6)), *(random.uniform(-k, k, (200, 6)) for k in (2, 10))
    q, v, a = (torch.as_tensor(x) for x in draws)
    with torch.no_grad():
        error = result.robot.inverse_dynamics(q, v, a) - real_robot().inverse_dynamics(q, v, a)
    return size, float(error.square().mean().sqrt())


def draw(table: dict[str, list], path: Path) -> None:
    """Write both numbers over the rounds."""
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots(1, 2)
    for name, rows in table.items():
        for ax, y in zip(axes, zip(*rows, strict=True), strict=True):
            ax.plot(range(1, len(y) + 1), y, "o-", label=name)
    axes[0].set(xlabel="round", title="mean log of the region's axes")
    axes[1].set(xlabel="round", title="error of torques in new states [N m]", yscale="log")
    axes[0].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2 if os.environ.get("COSTATE_QUICK") else 4)
    rounds = parser.parse_args().rounds
    true, options = real_robot(), {"check": False, "repair": False, "held_out": 0.0, "physical": False}
    first = cs.excite("ur5", **DESIGN)
    motions, table = {NEW: [first], SAME: [first]}, {NEW: [], SAME: []}
    for k in range(rounds):
        for name, played in motions.items():
            result = cs.identify("ur5", record(true, played, seed=k), **options)
            table[name].append(doubt(result))
            print(
                f"round {k + 1}, {name}: log size {table[name][-1][0]:.2f}, torque error {table[name][-1][1]:.3f} N m"
            )
            designed = name == NEW and k + 1 < rounds
            played.append(cs.excite("ur5", after=result, seed=k + 1, **DESIGN) if designed else first)
    draw(table, Path("out") / "21_active_learning.png")
    gain = table[SAME][-1][0] - table[NEW][-1][0]
    print(f"the axes of the region are {np.exp(gain):.1f} times shorter than with the same motion again")
    assert gain > 0.2


if __name__ == "__main__":
    main()
