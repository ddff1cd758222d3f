"""A network in place of a contact solver: the impulses of a quadruped's feet, time against error.

    python -m benchmarks.bench_learnt_contact [--markdown docs/augmentation.md] [--smoke]

A Laikago on flat ground, contact at its four feet, steps of 5 ms. Joints follow random positions around a stance, so that feet
stick, slide, lift and land. The networks learn the next velocity of `PGS` with 50 sweeps on some motions, and are judged on others.
Beside them: `PGS` with fewer sweeps, and the step without contact, below which no solver can get. Error: root mean square of the
difference of next velocities (all 18 coordinates), relative to that of the next velocity itself, and to that of the change which
contact makes of it. Float32, one thread, processor time, best of rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

import costate as cs
from benchmarks.measure.harness import Report, Table, interleaved, machine, options, publish
from costate.augment.network import Network
from costate.sim.contact.learnt_solver import LearntSolver, inputs_of

DT, SWEEPS = 0.005, (50, 10, 5, 2, 1)
HIDDEN = ((32,), (64, 64))


def make_world(contact: cs.ContactModel | None, parameters: tuple[str, ...] = ()) -> cs.World:
    robot = cs.load_robot("laikago")
    feet = [(f"laikago/{link}", "ground") for link in robot.link_names if link.startswith("toe")]
    ground = cs.Static("ground", cs.shapes.plane())
    return cs.World(
        [robot], scenery=[ground], contact=contact, dt=DT, collide=feet, parameters=list(parameters), check=False
    )


def solver(sweeps: int) -> cs.PGS:
    return cs.PGS(sweeps=sweeps, impacts=0, joint_limits=False, joint_friction=False)


def motions(world: cs.World, batch: int, steps: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return states (n, nx) and controls (n, nu) of motions, and the states after them."""
    random = torch.Generator().manual_seed(seed)
    state = world.initial_state(batch)
    stance = state[:, 7:19].clone()
    state[:, 2] += 0.02 * torch.randn(batch, generator=random)
    state[:, 19:] += 0.3 * torch.randn(batch, 18, generator=random)
    found: list[tuple[Tensor, ...]] = []
    for t in range(steps):
        if t % 20 == 0:
            target = stance + 0.3 * torch.randn(batch, 12, generator=random)
        control = (60.0 * (target - state[:, 7:19]) - 1.5 * state[:, 25:]).clamp(-40, 40)
        after = world.step(state, control)
        found.append((state, control, after))
        up = 1 - 2 * (after[:, 3] ** 2 + after[:, 4] ** 2)
        fallen = (up < 0.7) | (after[:, 2] < 0.2) | ~torch.isfinite(after).all(-1)
        state = torch.where(fallen[:, None], world.initial_state(batch), after)
    states, controls, after = (torch.cat(x) for x in zip(*found, strict=True))
    return states, controls, after


def trained(
    hidden: tuple[int, ...], data: tuple[Tensor, Tensor, Tensor], iterations: int, seed: int
) -> tuple[cs.World, Network, float]:
    """Return a world with a learnt solver, its network, and processor seconds of training."""
    names = inputs_of(make_world(LearntSolver()).setup)
    scales = {name: 0.5 for name in names if name.startswith("position")}
    # 25 kg on four feet: an impulse of 1 N s is a change of about 0.2 m/s.
    network = Network(names, 12, hidden=hidden, scale=1.0, input_scales=scales, seed=seed, activation="elu")
    world = make_world(LearntSolver(network=network), ("weights",))
    states, controls, after = data
    scale = 1 / after[:, 19:].std(0)
    random = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, iterations, 1e-5)
    begun = time.process_time()
    for _ in range(iterations):
        rows = torch.randint(len(states), (1024,), generator=random)
        found = world.step(states[rows], controls[rows], params={"weights": network.vector()})
        loss = (((found - after[rows])[:, 19:] * scale) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return world, network, time.process_time() - begun


def errors(found: Tensor, after: Tensor, free: Tensor) -> tuple[float, float]:
    """Return the error of next velocities, relative to them and to what contact changes [%]."""

    def size(x: Tensor) -> Tensor:
        return x[:, 19:].square().sum(-1).mean().sqrt()

    miss = size(found - after)
    return float(100 * miss / size(after)), float(100 * miss / size(after - free))


def curve(smoke: bool) -> Table:
    batch, steps, iterations = (32, 20, 20) if smoke else (256, 200, 4000)
    reference = make_world(solver(50))
    data, unseen = (motions(reference, batch, steps, seed) for seed in (0, 1))
    free = make_world(None).step(*unseen[:2])
    some = unseen[0][:1024], unseen[1][:1024]
    empty = make_world(None)
    calls: dict[str, Callable[[], Tensor]] = {"no contact": lambda: empty.step(*some)}
    told: dict[str, tuple[float, ...]] = {"no contact": (*errors(free, unseen[2], free), 0.0)}
    for k in SWEEPS[: 2 if smoke else None]:
        world = make_world(solver(k))
        calls[f"PGS, {k} sweeps"] = lambda w=world: w.step(*some)
        told[f"PGS, {k} sweeps"] = (*errors(world.step(*unseen[:2]), unseen[2], free), 0.0)
    for hidden in HIDDEN[: 1 if smoke else None]:
        world, network, seconds = trained(hidden, data, iterations, 0)
        weights = {"weights": network.vector().detach()}
        name = f"network, {' + '.join(map(str, hidden))} units"
        calls[name] = lambda w=world, p=weights: w.step(*some, params=p)
        told[name] = (*errors(world.step(*unseen[:2], params=weights), unseen[2], free), seconds)
        print(name, told[name], flush=True)
    seconds = interleaved(calls, 3 if smoke else 15, clock=time.process_time)
    slowest = seconds[f"PGS, {SWEEPS[0]} sweeps"]
    rows = tuple(
        (name, 1e6 * s / 1024, f"{slowest / s:.1f}", *(f"{x:.2g} %" for x in told[name][:2]), f"{told[name][-1]:.0f} s")
        for name, s in seconds.items()
    )
    head = ("solver", "µs per step", "times as fast", "error of v'", "of what contact changes", "training")
    note = f"{batch} motions of {steps} steps to learn from and as many unseen; {iterations} iterations of Adam, 1,024 steps each."
    return Table("Impulses of a quadruped by a network", head, rows, note)


def main() -> None:
    chosen = options(__doc__ or "", ["curve"])
    torch.set_num_threads(1)
    report = Report(
        "A network in place of a solver", "python -m benchmarks.bench_learnt_contact", machine(), (curve(chosen.smoke),)
    )
    publish(report, chosen)


if __name__ == "__main__":
    main()
