"""Load a robot, draw it, and call each of its functions once: poses, Jacobians, masses, torques, accelerations, energies.

    python examples/01_load_a_robot.py [ROBOT] [--out FOLDER]

ROBOT is a built-in name (`costate robots` lists them) or a path to a URDF or MJCF file.
"""

import argparse
from pathlib import Path

import torch

import costate as cs

torch.set_default_dtype(torch.float64)
BATCH = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robot", nargs="?", default="panda")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    robot = cs.load_robot(options.robot)
    tip = robot.link_names[-1]
    print(f"{robot.name}: {robot.nq} coordinates, {robot.nv} velocities, {len(robot.link_names)} links")
    print(f"  joints  {', '.join(robot.joint_names)}")
    print(f"  links   {', '.join(robot.link_names)}")

    torch.manual_seed(0)
    q = robot.random_configuration(BATCH)  # within limits, (1000, nq)
    v, a = torch.randn(2, BATCH, robot.nv)
    print("wrote", cs.render(robot, q[None, :4], options.out / "01_load_a_robot.png", size=(720, 400)))  # four of them
    push = {tip: torch.randn(BATCH, 6)}  # force [N] and torque [N m] on the last link

    # Kinematics: poses, velocities and accelerations.
    pose = robot.forward_kinematics(q, tip)
    J = robot.jacobian(q, tip)
    velocity = robot.link_velocity(q, v, tip)
    acceleration = robot.link_acceleration(q, v, a, tip)
    com, J_com = robot.center_of_mass(q), robot.com_jacobian(q)

    # Dynamics: M(q) a + h(q, v) = tau + J^T f.
    M, h, g = robot.mass_matrix(q), robot.bias_forces(q, v), robot.gravity_torques(q)
    tau = robot.inverse_dynamics(q, v, a, push)
    again = robot.forward_dynamics(q, v, tau, push)
    kinetic, potential, momentum = robot.kinetic_energy(q, v), robot.potential_energy(q), robot.momentum(q, v)

    # Integration: quaternions stay unit, and `difference` undoes `integrate`.
    after = robot.integrate(q, v, dt=0.01)

    shapes = {
        "pose.position": pose.position,
        "pose.rotation": pose.rotation,
        "pose.quaternion": pose.quaternion,
        "jacobian": J,
        "link_velocity": velocity,
        "link_acceleration": acceleration,
        "center_of_mass": com,
        "com_jacobian": J_com,
        "mass_matrix": M,
        "bias_forces": h,
        "gravity_torques": g,
        "inverse_dynamics": tau,
        "forward_dynamics": again,
        "kinetic_energy": kinetic,
        "potential_energy": potential,
        "momentum": momentum,
        "integrate": after,
    }
    print(f"\n{'function':<20}{'shape':<18}first sample")
    for name, x in shapes.items():
        numbers = "  ".join(f"{float(y):+.3f}" for y in x[0].reshape(-1)[:6])
        print(f"{name:<20}{tuple(x.shape)!s:<18}{numbers}{'  ...' if x[0].numel() > 6 else ''}")

    # Check the equations that relate these quantities.
    errors = {
        "forward dynamics undoes inverse dynamics": again - a,
        "M a + h = tau + J^T f": (M @ a[..., None])[..., 0] + h - tau - (J.mT @ push[tip][..., None])[..., 0],
        "link velocity is J v": velocity - (J @ v[..., None])[..., 0],
        "kinetic energy is v^T M v / 2": kinetic - (v * (M @ v[..., None])[..., 0]).sum(-1) / 2,
        "difference undoes integrate": robot.difference(q, after) - 0.01 * v,
    }
    print()
    for name, error in errors.items():
        print(f"{name:<45}{float(error.abs().max()):.1e}")
        assert float(error.abs().max()) < 1e-8 * max(1.0, float(tau.abs().max())), name


if __name__ == "__main__":
    main()
