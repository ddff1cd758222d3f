"""Laws found again in simulated motions: networks in the step, and the inputs that a lasso leaves them.

python -m benchmarks.study_discovery [--seeds 10] [--only swimmer friction] [--markdown FILE] [--plot FILE] [--smoke]

A world with a law that the other world lacks moves from random states under random controls; positions and velocities are measured
with noise. The other world gets a network where the law acts, with the inputs of the law among others that have nothing to do with
it. A seed draws motions, noise, starts and hops anew. It succeeds if the inputs found are exactly those of the law.

    swimmer     three links in a plane; a fluid resists each of them along its axis and, four times as much, across it
    friction    a joint of a double pendulum rubs, the more the heavier its load: -(0.2 + 0.05 |load|) tanh(v / 0.1) - 0.1 v
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

import costate as cs
from benchmarks.measure.harness import Report, Table, machine, options, publish
from costate.optimise.discovery import DiscoverOptions, Discovery, Motions, discover, motion_loss

NOISE = 1e-3
"""Standard deviation of the noise on measured positions and velocities [rad, m, rad/s, m/s]."""
STEPS, WINDOW, MOTIONS = 40, 5, 16

LINK = """
  <link name="link_{k}"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.09" izz="0.09" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{name}" type="{type}"><parent link="{parent}"/><child link="link_{k}"/><origin xyz="{x} 0 0"/>
    <axis xyz="0 0 1"/><limit lower="-9" upper="9" effort="9" velocity="99"/></joint>"""
SLIDE = """
  <link name="{child}"/>
  <joint name="{child}_slide" type="prismatic"><parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/>
    <limit lower="-99" upper="99" effort="9" velocity="99"/></joint>"""


@dataclass(frozen=True)
class Problem:
    """A law that is to be found."""

    world: Callable[[], cs.World]
    """Function that makes the world without the law."""
    truth: Callable[[cs.World], Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]
    """Function of that world that returns the step (state, control) with the law."""
    augment: Callable[[cs.World, int], object]
    """Function of a world and a seed that puts the network into it."""
    inputs: frozenset[str]
    """Inputs of the law."""
    spread: torch.Tensor
    """Standard deviation of states at the start, (nx,)."""
    push: torch.Tensor
    """Standard deviation of controls, (nu,)."""


def swimmer() -> Problem:
    parts = [
        SLIDE.format(child="along", parent="base", axis="1 0 0"),
        SLIDE.format(child="across", parent="along", axis="0 1 0"),
    ]
    joints = [
        ("turn", "continuous", "across", 0),
        ("front", "continuous", "link_0", 1),
        ("back", "continuous", "link_1", 1),
    ]
    parts += [LINK.format(k=k, name=n, type=t, parent=p, x=x) for k, (n, t, p, x) in enumerate(joints)]
    text = '<robot name="swimmer"><link name="base"/>' + "".join(parts) + "</robot>"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "swimmer.urdf")
        file.write_text(text)
        robot = cs.load_robot(file, gravity=(0, 0, 0))
    links = [f"link_{k}" for k in range(3)]

    def world() -> cs.World:
        actuators = {"front": cs.Torque(), "back": cs.Torque()}
        return cs.World([robot], actuators=actuators, contact=None, dt=0.02)

    def truth(world: cs.World) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        along = torch.tensor([0.25, 1.0, 1.0])
        com = torch.tensor([0.5, 0.0, 0.0])

        def step(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
            q, v = x.split(5, -1)
            wrenches = {}
            for link in links:
                R = robot.forward_kinematics(q, link).rotation
                linear, angular = robot.link_velocity(q, v, link).split(3, -1)
                arm = R @ com
                own = R.mT @ (linear + torch.linalg.cross(angular, arm))[..., None]
                force = -(R @ (along[:, None] * own))[..., 0]
                wrenches[link] = torch.cat([force, torch.linalg.cross(arm, force)], -1)
            return world.step(x, u, wrenches=wrenches)

        return step

    def augment(world: cs.World, seed: int) -> object:
        inputs = ["velocity.x", "velocity.y", "spin.z", "position:front", "position:back", "speed:front", "speed:back"]
        return world.augment("drag", on=links, inputs=inputs, hidden=(6,), seed=seed, name="fluid")

    spread = torch.tensor([1.0, 1.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    return Problem(world, truth, augment, frozenset({"velocity.x", "velocity.y"}), spread, torch.ones(2))


def friction() -> Problem:
    robot = cs.load_robot("pendulum2")

    def world() -> cs.World:
        return cs.World([robot], contact=None, dt=0.01)

    def truth(world: cs.World) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        def step(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
            q, v = x.split(2, -1)
            load, speed = robot.bias_forces(q, v)[..., 0], v[..., 0]
            rub = (0.2 + 0.05 * load.abs()) * torch.tanh(speed / 0.1) + 0.1 * speed
            return world.step(x, u - torch.stack([rub, torch.zeros_like(rub)], -1))

        return step

    def augment(world: cs.World, seed: int) -> object:
        inputs = ["speed", "load", "position", "speed:joint_2", "position:joint_2", "control:joint_1"]
        scales = {"speed": 3.0, "load": 10.0, "position": 3.0, "control": 2.0}
        return world.augment(
            "joint_torque", on="joint_1", inputs=inputs, hidden=(8,), input_scales=scales, seed=seed, name="rub"
        )

    spread = torch.tensor([2.0, 2.0, 3.0, 3.0])
    return Problem(world, truth, augment, frozenset({"speed", "load"}), spread, 2 * torch.ones(2))


PROBLEMS: dict[str, Callable[[], Problem]] = {"swimmer": swimmer, "friction": friction}


def measured(problem: Problem, seed: int) -> Motions:
    """Return noisy motions of the world with the law, cut into windows."""
    random = torch.Generator().manual_seed(seed)
    step = problem.truth(problem.world())
    x = problem.spread * torch.randn(MOTIONS, len(problem.spread), generator=random)
    states, controls = [x], []
    for t in range(STEPS):
        if t % 10 == 0:
            u = problem.push * torch.randn(MOTIONS, len(problem.push), generator=random)
        controls.append(u)
        states.append(step(states[-1], u))
    noisy = torch.stack(states)
    noisy = noisy + NOISE * torch.randn(noisy.shape, generator=random)
    return Motions(noisy, torch.stack(controls)).windows(WINDOW)


def found(problem: Problem, seed: int, chosen: DiscoverOptions) -> tuple[bool, Discovery, float]:
    """Return whether exactly the inputs of the law were found, the discovery, and processor seconds."""
    fit, held_out = measured(problem, 2 * seed), measured(problem, 2 * seed + 1)
    world = problem.world()
    problem.augment(world, seed)
    begun = time.process_time()
    result = discover(world.networks, motion_loss(world, fit), motion_loss(world, held_out), chosen)
    (inputs,) = result.inputs.values()
    return frozenset(inputs) == problem.inputs, result, time.process_time() - begun


def study(names: list[str], seeds: list[int], chosen: DiscoverOptions) -> tuple[Table, dict[str, list[Discovery]]]:
    rows, kept = [], {}
    for name in names:
        problem = PROBLEMS[name]()
        results = []
        for seed in seeds:
            results.append(found(problem, seed, chosen))
            exact, result, seconds = results[-1]
            (inputs,) = result.inputs.values()
            print(
                f"{name}, seed {seed}: {', '.join(inputs)} {'' if exact else '(not exact)'} {seconds:.1f} s", flush=True
            )
        exact = sum(ok for ok, *_ in results)
        losses = sorted(100 * r.loss for _, r, _ in results)
        middle, seconds = losses[len(losses) // 2], sum(s for *_, s in results) / len(results)
        law = ", ".join(sorted(problem.inputs))
        rows.append((name, law, f"{exact} of {len(seeds)}", f"{middle:.2g} %", f"{seconds:.1f} s"))
        kept[name] = [r for _, r, _ in results]
    head = (
        "law",
        "its inputs",
        "found exactly",
        "loss held out (median, of that without a network)",
        "processor time per seed",
    )
    note = (
        f"{MOTIONS} motions of {STEPS} steps to fit and as many held out, in windows of {WINDOW} steps; noise {NOISE:g} on every "
        f"measured number; {len(chosen.penalties)} penalties with {chosen.starts} starts each, {chosen.hops} hop, "
        f"tolerance {chosen.tolerance:g}; seeds {seeds[0]} to {seeds[-1]}."
    )
    return Table("Inputs found by sparsity", head, tuple(rows), note), kept


def draw(kept: dict[str, list[Discovery]], file: Path) -> None:
    """Draw how much every input counts, seed by seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    for axes, (name, results) in zip(figure.subplots(1, len(kept), squeeze=False)[0], kept.items(), strict=True):
        (lengths,) = results[0].importance.values()
        for k, result in enumerate(results):
            (own,) = result.importance.values()
            most = max(own.values()) or 1.0
            axes.plot(
                [own[x] / most for x in lengths],
                range(len(lengths)),
                "o",
                alpha=0.4,
                color="C0",
                label="" if k else name,
            )
        axes.set_yticks(range(len(lengths)), [x.replace("pendulum2/", "").replace("swimmer/", "") for x in lengths])
        axes.set_xlabel("length of the column, relative")
        axes.set_title(name)
        axes.invert_yaxis()
    figure.savefig(file, dpi=120)


def main() -> None:
    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
        parser.add_argument("--first", type=int, default=0, help="first seed: others than those that judge, for trying")
        parser.add_argument("--tolerance", type=float, default=DiscoverOptions.tolerance, help="see DiscoverOptions")
        parser.add_argument("--plot", type=Path, help="file for a picture")

    given = options(__doc__ or "", list(PROBLEMS), add)
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    chosen = DiscoverOptions(tolerance=given.rest.tolerance)
    chosen = replace(chosen, iterations=20, starts=2, hops=0) if given.smoke else chosen
    seeds = [given.rest.first + k for k in range(1 if given.smoke else given.rest.seeds)]
    table, kept = study(list(given.only), seeds, chosen)
    if given.rest.plot:
        draw(kept, given.rest.plot)
    publish(Report("Laws found again", "python -m benchmarks.study_discovery", machine(), (table,)), given)


if __name__ == "__main__":
    main()
