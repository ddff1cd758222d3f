"""A law that the model lacks, found in motions: a network in the step, and the inputs it cannot do without.

A double pendulum rubs in its first joint. The model knows nothing about it. A network gets that joint's torque to add to, and looks
at six numbers; from noisy motions a lasso finds that one of them counts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from matplotlib.figure import Figure

import costate as cs
from costate.optimise.discovery import DiscoverOptions, Discovery, Motions, discover, motion_loss

torch.set_default_dtype(torch.float64)
DT = 0.01


def measured(seed: int) -> Motions:
    """Return noisy motions of the real robot: Coulomb and viscous friction in joint_1."""
    rubs = ["friction:pendulum2/joint_1", "damping:pendulum2/joint_1"]
    real = cs.World([cs.load_robot("pendulum2")], contact=None, dt=DT, parameters=rubs)
    random = torch.Generator().manual_seed(seed)
    start = 2 * torch.randn(24, 4, generator=random)
    controls = torch.randn(2, 24, 2, generator=random).repeat_interleave(10, 0)
    states = real.rollout(start, controls, params=dict(zip(rubs, (0.5, 0.2), strict=True)))
    return Motions(states + 1e-3 * torch.randn(states.shape, generator=random), controls).windows(5)


def draw(found: Discovery, speed: torch.Tensor, learnt: torch.Tensor, true: torch.Tensor) -> None:
    """Draw how much every input counts, and the law that was found."""
    figure = Figure(figsize=(8, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    lengths = found.importance["friction"]
    left.barh([name.replace("pendulum2/", "") for name in lengths], list(lengths.values()))
    left.invert_yaxis()
    left.set_xlabel("length of the input's column")
    right.plot(speed, true, "k", label="true")
    right.plot(speed, learnt, "C1--", label="learnt")
    right.set_xlabel("speed [rad/s]")
    right.set_ylabel("torque [N m]")
    right.legend()
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/24_augment.png", dpi=80)


def main() -> None:
    world = cs.World([cs.load_robot("pendulum2")], contact=None, dt=DT)
    network = world.augment(
        "joint_torque",
        on="joint_1",
        inputs=["speed", "position", "load", "speed:joint_2", "position:joint_2", "control:joint_1"],
        hidden=(6,),
        input_scales={"speed": 3.0, "load": 10.0, "position": 3.0},
        name="friction",
    )
    fit, held_out = (motion_loss(world, measured(seed)) for seed in (0, 1))
    found = discover(world.networks, fit, held_out, DiscoverOptions(iterations=100, starts=2, hops=1))
    print(found.report())
    assert found.inputs == {"friction": ["speed"]}

    x = torch.zeros(121, 6)
    x[:, 0] = torch.linspace(-4, 4, 121)
    learnt, true = network(x)[:, 0].detach(), -0.5 * torch.tanh(x[:, 0] / 0.01) - 0.2 * x[:, 0]
    fast = x[:, 0].abs() > 0.5
    print(f"largest difference beyond 0.5 rad/s: {(learnt - true)[fast].abs().max():.3f} N m")
    assert torch.allclose(learnt[fast], true[fast], atol=0.2)
    draw(found, x[:, 0], learnt, true)

    with tempfile.TemporaryDirectory() as folder:  # weights as safetensors, what they do as JSON
        world.save_networks(Path(folder, "friction"))
        again = cs.World([cs.load_robot("pendulum2")], contact=None, dt=DT)
        again.load_networks(Path(folder, "friction"))
    state = torch.tensor([0.3, -0.4, 0.5, 0.8])
    assert torch.equal(again.step(state), world.step(state))


if __name__ == "__main__":
    main()
