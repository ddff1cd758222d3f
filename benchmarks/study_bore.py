"""Bottles in a bore that are handled roughly: gaps that jump, and gradients that one step multiplies.

    python -m benchmarks.study_bore [--contact PGS] [--noise 0.1] [--smoke] [--json FILE] [--markdown FILE] [--only TABLE ...]

"jumps": episodes of the insertion (untrained policy, its own starts) with noise on the actions. Counted are those in which a gap
falls by more than 20 mm in a control step of 10 ms and ends more than 1 mm inside: the bottle moves by less than 20 mm in a step.

"gradients": bottles in a chamfered bore, up to 0.8 mm inside of its wall, each pressed by one random action for 90 steps: whether
gradients with respect to states and actions are finite in float32 as trained; by how much a step, and the first 12 of them,
multiply a gradient. For the steepest step, the slope of the motion over larger differences, and what `costate.diagnose` names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

import costate as cs
from benchmarks.measure import harness
from costate.tasks.insertion import Insertion, InsertionOptions, draw
from costate.tasks.insertion.scene import ARM_Q, DEPTH, SOCKET_XY
from costate.tasks.insertion.training import InsertionTraining
from costate.train.episode import rollout
from costate.train.policy import acting
from costate.train.streams import generator

JUMP, INSIDE = 0.02, 1e-3
"""Fall of a gap in one step that is a jump, and the overlap it must end with [m]."""
OFFSET = 1.1e-3
"""Largest offset of a bottle from the middle of a bore with 0.3 mm of clearance [m]."""
SIZES = (1.0, 0.1)
"""Largest actions, as shares of what the arm can do."""
TASKS = {"default": InsertionOptions(), "chamfered": InsertionOptions().chamfered()}


def task_with(options: InsertionOptions, contact: str) -> Insertion:
    """The task, whose worlds have a contact model given by its name in costate."""

    class Other(Insertion):
        @property
        def _contact(self) -> Any:
            usual = super()._contact
            if contact == type(usual).__name__:
                return usual
            model = getattr(cs, contact)
            return model(friction=self.options.friction)

    return Other(options)


# --- gaps that jump ---------------------------------------------------------------------------------------------------


def jumps(task: Insertion, noise: float, episodes: int) -> tuple[int, float]:
    """Return how many episodes have a jump, and the deepest overlap of all [m]."""
    policy = acting(task.policy(InsertionTraining(), generator("weights", 0)).double())
    random = torch.Generator().manual_seed(0)

    def noisy(observation: Tensor) -> Tensor:
        action = policy(observation)
        return action + noise * torch.randn(action.shape, generator=random, dtype=action.dtype)

    with torch.no_grad():
        drawn = draw(task, episodes, generator("held out", 0), None, torch.float64)
        states = rollout(task, noisy, drawn).states
        gaps = task.world.gaps(states)
    falls = (gaps[:-1] - gaps[1:] > JUMP) & (gaps[1:] < -INSIDE)
    return int(falls.flatten(2).any(-1).any(0).sum()), -float(gaps.min())


def jump_table(contact: str, noises: Sequence[float], episodes: int) -> harness.Table:
    rows = []
    for name, options in TASKS.items():
        task = task_with(options, contact)
        for noise in noises:
            count, deepest = jumps(task, noise, episodes)
            rows.append((name, noise, f"{count} of {episodes}", f"{1e3 * max(deepest, 0):.2f}"))
            print(*rows[-1], flush=True)
    columns = ("task", "noise on actions", "episodes with a jump", "deepest overlap [mm]")
    return harness.Table("jumps", columns, tuple(rows), f"{contact}.")


# --- gradients of jammed bottles --------------------------------------------------------------------------------------


def jammed(task: Insertion, batch: int, steps: int, size: float, seed: int) -> tuple[Tensor, Tensor]:
    """States (batch, 18) of bottles anywhere in the bore, beside its middle, and commands (steps, batch, 6)."""
    random = torch.Generator().manual_seed(seed)
    share = torch.rand(batch, 3, generator=random, dtype=torch.float64)
    middle = torch.tensor(task.options.center, dtype=torch.float64).expand(batch, 2)
    angle = 2 * torch.pi * share[:, 0]
    beside = OFFSET * share[:, 1:2] * torch.stack([angle.cos(), angle.sin()], -1)
    states = task.world.initial_state().double().repeat(batch, 1)
    states[:, ARM_Q] = task.seats(middle + beside, DEPTH * share[:, 2:])
    states[:, SOCKET_XY] = middle
    actions = size * (2 * torch.rand(batch, 6, generator=random, dtype=torch.float64) - 1)
    return states, task.control(actions).expand(steps, batch, 6)


def finite(task: Insertion, states: Tensor, controls: Tensor) -> int:
    """Return how many episodes have finite gradients in float32."""
    start, pressed = states.float().requires_grad_(), controls.float().requires_grad_()
    x, total = start, torch.zeros(())
    for u in pressed:
        x = task.plain.step(x, u)
        total = total + x.square().sum()
    by_state, by_control = torch.autograd.grad(total, [start, pressed])
    return int((by_state.isfinite().all(-1) & by_control.isfinite().all(-1).all(0)).sum())


def growth(task: Insertion, states: Tensor, controls: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the norms of the derivatives of all steps (T, B), those of their products (B,), and the states (T, B, 18)."""
    path, norms, total = [states], [], None
    for u in controls:
        A, _ = task.plain.linearize(path[-1], u)
        norms.append(torch.linalg.matrix_norm(A, 2))
        total = A if total is None else A @ total
        with torch.no_grad():
            path.append(task.plain.step(path[-1], u))
    assert total is not None
    return torch.stack(norms), torch.linalg.matrix_norm(total, 2), torch.stack(path[:-1])


def slopes(task: Insertion, state: Tensor, control: Tensor, differences: Sequence[float]) -> list[float]:
    """Return the change of the step along its steepest direction by each difference."""
    A, _ = task.plain.linearize(state, control)
    way = torch.linalg.svd(A)[2][0]
    ends = [task.plain.step(state + s * h * way, control) for h in differences for s in (1, -1)]
    return [float((a - b).norm() / (2 * h)) for h, a, b in zip(differences, ends[::2], ends[1::2], strict=True)]


def gradient_table(contact: str, size: float, batch: int, runs: int, smoke: bool) -> harness.Table:
    task = task_with(TASKS["chamfered"], contact)
    whole = sum(finite(task, *jammed(task, batch, 12 if smoke else 90, size, seed)) for seed in range(runs))
    steps, total, path = growth(task, *(given := jammed(task, batch, 12, size, runs)))
    t, k = divmod(int(steps.argmax()), batch)
    x, u = path[t, k], given[1][t, k]
    found, seen = task.plain.contacts(x, u), cs.diagnose(task.plain, path[:, k], given[1][:-1, k])
    over = ", ".join(f"{s:.1e}" for s in slopes(task, x, u, (1e-8, 1e-5, 1e-3)))
    rows: list[tuple[Any, ...]] = [
        ("not finite in float32", f"{runs * batch - whole} of {runs * batch}"),
        ("a step: median, 99 %, largest", _quantiles(steps)),
        ("steps above 1e4", f"{100 * float((steps > 1e4).double().mean()):.2f} %"),
        ("12 steps: median, 99 %, largest", _quantiles(total)),
        ("steepest step: slope over 1e-8, 1e-5, 1e-3", over),
        ("steepest step: gaps [mm]", ", ".join(f"{1e3 * g:.3f}" for g in found.gaps.tolist())),
        ("steepest step: forces [N]", ", ".join(f"{f:.0f}" for f in found.forces.tolist())),
        ("deepest overlap [mm]", f"{-1e3 * float(task.plain.gaps(path).min()):.2f}"),
        *(("diagnose names", f"{cause.kind}, step {cause.step}: {cause.what}") for cause in seen.causes),
    ]
    return harness.Table(f"gradients, actions up to {size:g}", ("", contact), tuple(rows), f"{batch} episodes a run.")


def _quantiles(x: Tensor) -> str:
    chosen = x.flatten().double()
    return ", ".join(f"{float(v):.1e}" for v in (chosen.median(), chosen.quantile(0.99), chosen.max()))


def main() -> None:
    def more(parser: Any) -> None:
        parser.add_argument("--contact", default="PGS", help="contact model, by its name in costate")
        parser.add_argument("--noise", nargs="+", type=float, default=[0.0, 0.1], help="noise on the actions")
        parser.add_argument("--episodes", type=int, default=256, help="episodes of each kind")
        parser.add_argument("--runs", type=int, default=6, help="runs of 512 jammed bottles")

    chosen = harness.options(__doc__ or "", ["jumps", "gradients"], more)
    torch.set_num_threads(1)
    given = chosen.rest
    tables = []
    if "jumps" in chosen.only:
        tables.append(jump_table(given.contact, given.noise, 16 if chosen.smoke else given.episodes))
    if "gradients" in chosen.only:
        batch = 32 if chosen.smoke else 512
        tables += [gradient_table(given.contact, size, batch, given.runs, chosen.smoke) for size in SIZES]
    command = f"python -m benchmarks.study_bore --contact {given.contact}"
    harness.publish(harness.Report("Measured", command, harness.machine(), tuple(tables)), chosen)


if __name__ == "__main__":
    main()
