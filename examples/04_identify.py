"""Identify a UR5 from a log: design a motion, record it (here: simulate it), fit the parameters, and write a new URDF file.

    python examples/04_identify.py [--out FOLDER]

The real robot differs from its file: its masses are different, and its joints have friction that the file does not mention. Only
encoder positions and torques are logged, both with noise. The log is a CSV file, which `cs.identify` reads.
"""

import argparse
import os
import shutil
from pathlib import Path

import numpy as np
import torch

import costate as cs

torch.set_default_dtype(torch.float64)
RATE, PERIODS = 250, 1 if os.environ.get("COSTATE_QUICK") else 3  # samples per second
TORQUE_NOISE, ENCODER_NOISE = 0.02, 2e-5  # relative to the root mean square of the torques; rad


def real_robot() -> cs.Robot:
    """Make a robot with links 10 to 30 % heavier than in the file, and joints with damping, friction and rotors."""
    robot = cs.load_robot("ur5")
    for k, link in enumerate(("upper_arm_link", "forearm_link", "wrist_1_link")):
        mass = robot.model.link(link).inertia.mass
        robot.learn(link, "mass", cs.params.Positive(init=[(1.1 + 0.1 * k) * mass]))
    for joint in robot.joint_names:
        for parameter, value in (("damping", 0.4), ("friction", 0.6), ("armature", 0.03)):
            robot.learn(joint, parameter, cs.params.Positive(init=[value]))
    return robot


def record(robot: cs.Robot, motion: dict[str, np.ndarray], path: Path) -> None:
    """Play the motion and log time, encoder positions and torques, as a robot would."""
    rng = np.random.default_rng(0)
    with torch.no_grad():
        q, v, a = (torch.as_tensor(motion[name]) for name in ("q", "v", "a"))
        tau = robot.inverse_dynamics(q, v, a).numpy()
    tau = tau + TORQUE_NOISE * np.sqrt((tau**2).mean(0)) * rng.normal(size=tau.shape)
    q = motion["q"] + ENCODER_NOISE * rng.normal(size=tau.shape)
    names = ["t", *(f"q_{j}" for j in robot.joint_names), *(f"tau_{j}" for j in robot.joint_names)]
    np.savetxt(path, np.column_stack([motion["t"], q, tau]), delimiter=",", header=",".join(names), comments="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out") / "04_identify")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    motion = cs.excite("ur5", margin=0.8)
    print(f"a motion of {motion.period:g} s identifies {motion.rank} of {motion.structural_rank} base parameters")
    true = real_robot()
    record(true, motion.sample(RATE, PERIODS), out / "log.csv")

    result = cs.identify("ur5", out / "log.csv", period=motion.period)
    print(result.summary())
    for plot in result.plot(out):
        print("wrote", plot)
    shutil.copy(out / "torques.png", out.with_suffix(".png"))
    result.save_urdf(out / "identified.urdf")

    # Check that the new file predicts the torques of another motion, which was not recorded.
    found, given = cs.load_robot(out / "identified.urdf"), cs.load_robot("ur5")
    new = cs.excite("ur5", margin=0.8, seed=7, iterations=50, restarts=1).sample(RATE)
    q, v, a = (torch.as_tensor(new[name]) for name in ("q", "v", "a"))
    with torch.no_grad():
        torque = true.inverse_dynamics(q, v, a)
        before, after = ((r.inverse_dynamics(q, v, a) - torque).norm() / torque.norm() for r in (given, found))
    print(f"\nerror of the torques in a new motion: {before:.1%} with the original file, {after:.2%} with the new one")
    assert after < 0.02 < before


if __name__ == "__main__":
    main()
