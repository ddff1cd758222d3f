"""Solve inverse kinematics for 4,096 poses at once, within joint limits; differentiate a loss on the solution; draw a circle.

    python examples/02_inverse_kinematics.py [--robot ur5 --link tool0] [--out FOLDER]

One call solves all poses by a Levenberg-Marquardt iteration, compiled for this robot, that runs until every sample is solved.
Gradients do not go through the iterations: they follow from the solution by the implicit function theorem.
"""

import argparse
import time
from pathlib import Path

import torch

import costate as cs

torch.set_default_dtype(torch.float64)
POSES = 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", default="ur5")
    parser.add_argument("--link", default="tool0")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    robot, link = cs.load_robot(options.robot), options.link

    # Poses of random configurations can certainly be reached.
    pose = robot.forward_kinematics(robot.random_configuration(POSES, generator=torch.Generator().manual_seed(0)), link)
    robot.inverse_kinematics(pose, link)  # the first call compiles
    start = time.perf_counter()
    q = robot.inverse_kinematics(pose, link)
    seconds = time.perf_counter() - start

    found = robot.forward_kinematics(q, link)
    distance = (found.position - pose.position).norm(dim=-1)
    solved = distance < 1e-8
    print(f"{POSES} poses of {robot.name} in {1e3 * seconds:.0f} ms, {1e6 * seconds / POSES:.1f} us each")
    print(f"solved: {int(solved.sum())} of {POSES}, farthest {float(distance.max()):.1e} m off")
    assert bool(solved.all())
    assert bool(((q >= robot.lower) & (q <= robot.upper)).all()), "a joint is beyond its limits"

    # Find how the poses should move to bring the joints closer to the middle of their range.
    middle = (robot.lower + robot.upper) / 2
    position = pose.position.clone().requires_grad_()
    solution = robot.inverse_kinematics(cs.Pose(position, pose.rotation), link, q)
    loss = (solution - middle).square().sum(-1)
    (slope,) = torch.autograd.grad(loss.sum(), position)

    # Check: a small step along the negative gradient, solved again from q, lowers the loss as the gradient predicts.
    regular = torch.linalg.svdvals(robot.jacobian(q, link))[:, -1] > 0.05
    size = slope.norm(dim=-1, keepdim=True)
    step = 1e-6
    moved = robot.inverse_kinematics(
        cs.Pose(pose.position - step * slope / size, pose.rotation), link, q, tolerance=1e-14
    )
    gained = (loss.detach() - (moved - middle).square().sum(-1)) / step
    error = ((gained - size[:, 0]).abs() / size[:, 0])[regular]
    print(
        f"gradient: expected and measured slopes differ by {float(error.median()):.1e} (median of {int(regular.sum())})"
    )
    assert float(error.median()) < 1e-4

    # Draw a circle: one call again, for all of its poses, from the pose at home.
    home = torch.as_tensor(robot.model.home) if robot.model.home is not None else robot.neutral()
    at, turn = robot.forward_kinematics(home, link), torch.linspace(0, 2 * torch.pi, 81)
    circle = at.position + 0.12 * torch.stack([0 * turn, turn.cos() - 1, turn.sin()], -1)
    path = robot.inverse_kinematics(cs.Pose(circle, at.rotation.expand(81, 3, 3)), link, home.expand(81, -1))
    assert float((robot.forward_kinematics(path, link).position - circle).norm(dim=-1).max()) < 1e-8
    picture = options.out / "02_inverse_kinematics.png"
    print("wrote", cs.render(robot, path, picture, size=(640, 400), trails=[link], dt=0.05))


if __name__ == "__main__":
    main()
