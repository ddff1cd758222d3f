"""Differentiate through forward dynamics: find the torques with which a robot arm swings to a pose in one second.

    python examples/03_gradient_through_dynamics.py [--robot ur5] [--out FOLDER]

The motion is a loop of forward dynamics and `integrate`, 50 steps of 20 ms. The unknowns are the torques of every step.
Autograd differentiates the whole loop, and every call in it is compiled code.
"""

import argparse
import time
from pathlib import Path

import torch

import costate as cs
from costate.report import Report

torch.set_default_dtype(torch.float64)
STEPS, DT = 50, 0.02


def roll_out(robot: cs.Robot, q: torch.Tensor, torques: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return all configurations (STEPS + 1, nq) and the last velocity. torques (STEPS, nv): added to those that hold it still."""
    v, path = torch.zeros(robot.nv), [q]
    for extra in torques:
        tau = robot.bias_forces(path[-1], v) + extra
        v = v + DT * robot.forward_dynamics(path[-1], v, tau)
        path.append(robot.integrate(path[-1], v, DT))
    return torch.stack(path), v


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", default="ur5")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    robot = cs.load_robot(options.robot)
    tip = robot.link_names[-1]
    torch.manual_seed(0)
    start = torch.as_tensor(robot.model.home) if robot.model.home is not None else robot.neutral()
    target = robot.forward_kinematics(robot.integrate(start, 0.4 * torch.ones(robot.nv)), tip).position

    # Torques are scaled by what each joint needs for 1 rad/s^2, so that one step size suits all of them.
    scale = robot.mass_matrix(start).diagonal()
    unknown = torch.zeros(STEPS, robot.nv, requires_grad=True)

    def loss() -> torch.Tensor:
        q, v = roll_out(robot, start, unknown * scale)
        miss = robot.forward_kinematics(q[-1], tip).position - target
        return 100 * miss.square().sum() + v.square().sum() + 1e-4 * unknown.square().sum()

    # First, check the gradient along a random direction against central differences.
    value = loss()
    (slope,) = torch.autograd.grad(value, unknown)
    direction = torch.randn_like(unknown)
    with torch.no_grad():
        sides = []
        for h in (1e-5, -1e-5):
            unknown += h * direction
            sides.append(loss())
            unknown -= h * direction
    measured, expected = (sides[0] - sides[1]) / 2e-5, (slope * direction).sum()
    print(f"slope along a random direction: autograd {float(expected):.9f}, differences {float(measured):.9f}")
    assert abs(float(measured / expected) - 1) < 1e-6

    begin = time.perf_counter()
    optimizer = torch.optim.LBFGS([unknown], max_iter=60, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)
    with torch.no_grad():
        q, v = roll_out(robot, start, unknown * scale)
        miss = float((robot.forward_kinematics(q[-1], tip).position - target).norm())
        after = float(loss())
    print(f"loss before {value.item():.3f}, after {time.perf_counter() - begin:.1f} s of optimisation {after:.4f}")
    print(f"the tip ends {1e3 * miss:.2f} mm from its target, the joints at {float(v.abs().max()):.3f} rad/s")
    page = Report("A swing to a pose", f"{robot.name}, {STEPS} steps")
    page.replay(robot, q, trails=[tip], dt=DT)
    print("wrote", page.save(options.out / "03_gradient_through_dynamics.html"))
    picture = options.out / "03_gradient_through_dynamics.png"
    cs.render(robot, q[[0, 15, 25, -1]][None], picture, size=(640, 400), spacing=0.0)  # four moments in one picture
    assert miss < 5e-3 and float(v.abs().max()) < 0.05


if __name__ == "__main__":
    main()
