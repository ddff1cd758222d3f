"""One robot under several contact models, in turns: a Laikago that stands, and one that is shaken so that feet slip and strike."""

from __future__ import annotations

from collections.abc import Callable

import torch

import costate as cs
from benchmarks.measure.harness import Options, Table, interleaved

BATCH, STEPS, DT = 1024, 20, 0.002
MODELS: dict[str, cs.ContactModel] = {"Newton": cs.Newton(), "Hard": cs.Hard(), "PGS": cs.PGS()}
D = torch.float64


def laikago(contact: cs.ContactModel) -> cs.World:
    """A Laikago held by servos, whose feet touch the ground."""
    ground = cs.Static("ground", cs.shapes.plane())
    return cs.World(
        [cs.load_robot("laikago")], scenery=[ground], actuators=cs.PositionServo(300, 10), dt=DT, contact=contact,
        collide=lambda a, b: "toe" in a or "toe" in b, check=False,
    )  # fmt: skip


def cases(world: cs.World, batch: int) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """States and targets of the servos by name: at rest after 0.6 s; 0.1 s after a kick to all velocities, under random targets."""
    x = world.initial_state(dtype=D)
    hold = x[7:19].clone()
    random = torch.Generator().manual_seed(0)

    def noise(*shape: int) -> torch.Tensor:
        return 0.5 * torch.randn(*shape, dtype=D, generator=random)

    with torch.no_grad():
        x = world.rollout(x, hold.expand(300, -1))[-1].expand(batch, -1).clone()
        kicked = x.clone()
        kicked[:, 19:] += noise(batch, 18)
        kicked = world.rollout(kicked, hold + noise(50, batch, 12))[-1]
    return {"standing": (x, hold.expand(STEPS, batch, -1)), "shaken": (kicked, hold + noise(STEPS, batch, 12))}


def model_table(chosen: Options) -> list[Table]:
    """Microseconds of a step, and of a step with its gradient, by model; residual of the states that are shaken."""
    batch = 16 if chosen.smoke else BATCH
    runs: dict[tuple[str, str, str], Callable[[], object]] = {}
    residuals = {}
    for name, model in MODELS.items():
        world = laikago(model)
        single = world.initial_state(1, dtype=D)
        alone = single[:, 7:19].expand(200, 1, -1)
        runs[name, "one", "step"] = lambda w=world, x=single, u=alone: w.rollout(x, u)
        for case, (x, u) in cases(world, batch).items():
            runs[name, case, "step"] = lambda w=world, x=x, u=u: w.rollout(x, u)
            runs[name, case, "gradient"] = lambda w=world, x=x, u=u: (
                w.rollout(x.clone().requires_grad_(), u)[-1].sum().backward()
            )
            residuals[name] = world.contacts(x).residual
    best = interleaved({"/".join(key): run for key, run in runs.items()}, 2 if chosen.smoke else 5, clock=chosen.clock)
    rows = []
    for name in MODELS:
        times = [
            1e6 * best[f"{name}/{case}/{what}"] / (STEPS * batch)
            for case in ("standing", "shaken")
            for what in ("step", "gradient")
        ]
        left = residuals[name]
        rows.append((name, *times, 1e6 * best[f"{name}/one/step"] / 200, f"{left.max():.0e}"))
    columns = ("model", "standing, us", "with gradient", "shaken, us", "with gradient", "one robot, us", "residual")
    note = (
        f"Microseconds per Laikago and step of 2 ms, batch {batch} (one robot: batch 1), in turns. Residual: the largest of the "
        "states that are shaken; of Hard the largest speed by which a contact misses its law [m/s], of PGS by which one more "
        "sweep would change a row [m/s], of Newton the largest force that is not balanced [N]."
    )
    return [Table("A Laikago with each contact model", columns, tuple(rows), note)]
