"""Reinforcement learning on the insertion task, beside back-propagation through the simulation: control steps and time to success.

All methods train a controller of the same size, on the same episodes, with the same terms: PPO and SAC (stable-baselines3) get them
as dense rewards. Success is judged by the same criteria in the world with contact. Times are processor time on one thread, without
looks at the success rate for PPO and SAC. Runs are kept in --folder and continued where they stopped.

    python -m benchmarks.study_rl --minutes 10
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import harness
from costate.core.files import write_json
from costate.core.tensors import read_tensors, write_tensors
from costate.tasks.insertion import Insertion, InsertionOptions, draw, judge, run, summarise
from costate.tasks.insertion.reward import RewardOptions
from costate.tasks.insertion.training import ALONE
from costate.train.episode import Controller
from costate.train.run import Run
from costate.train.streams import generator
from costate.train.trainer import train

LEVELS = (0.5, 0.9, 0.95, 0.99)
"""Success rates; reported is when a method reached them for good."""
FUNNEL_RAMP = ALONE.funnel_ramp
"""Part of the budget over which the funnel term fades in, as it does for back-propagation."""
REWARDS = RewardOptions(replace(ALONE.weights, far=0.2, funnel=0.5, floor=0.1))
"""The terms of the loss, with weights that suit a search by trial: a pull from afar, and no fear of the socket's mouth."""
LEARNING_RATE = 1e-3
"""Learning rate of PPO and SAC; it falls linearly over the budget, to a twentieth."""
WATCHED, HELD_OUT = 256, 2000
"""Episodes of a look at the success rate, and of the one at the end."""


@dataclass
class Curve:
    """The progress of a method, kept in a file."""

    file: Path
    points: list[dict[str, float]] = field(default_factory=list)
    """steps, seconds, success, error [mm]."""
    final: dict[str, float] = field(default_factory=dict)
    """Evaluation on the held-out episodes, after the last step."""

    @classmethod
    def open(cls, file: Path) -> Curve:
        known = json.loads(file.read_text()) if file.exists() else {}
        return cls(file, known.get("points", []), known.get("final", {}))

    def save(self) -> None:
        write_json(self.file, {"points": self.points, "final": self.final})

    def add(self, **point: float) -> None:
        self.points.append(point)
        self.save()
        print(f"{self.file.stem}: " + ", ".join(f"{k} {v:.4g}" for k, v in point.items()), flush=True)

    @property
    def seconds(self) -> float:
        return self.points[-1]["seconds"] if self.points else 0.0

    def reached(self, success: float) -> dict[str, float] | None:
        """The first look from which on none was worse: early ones go up and down."""
        for k, point in enumerate(self.points):
            if all(p["success"] >= success for p in self.points[k:]):
                return point
        return None


def look(task: Insertion, controller: Controller, episodes: int, stream: str) -> dict[str, float]:
    """Success rate and mean error [mm] in the world with contact."""
    with torch.no_grad():
        trajectory = run(task, task.world, controller, draw(task, episodes, generator(stream, 0)))
    m = summarise(task, judge(task, trajectory))
    return {"success": m.success, "error": m.error_mean}


# --- the methods ------------------------------------------------------------------------------------------------------


class OutOfTime(Exception):  # noqa: N818  (not an error)
    pass


def back_propagation(task: Insertion, curve: Curve, seconds: float, smoke: bool) -> None:
    """`costate train insertion --unlimited`, without a guide: reinforcement learning has none, either."""
    folder = curve.file.with_suffix(".run")
    options = replace(ALONE, watch_interval=50, threads=1)
    options = replace(options, iterations=100) if smoke else options
    training = Run.open(folder) if folder.exists() else Run.create(folder, task, options)
    spent, begun = curve.seconds, time.process_time()

    def watch(row: dict[str, Any]) -> None:
        now = spent + time.process_time() - begun
        if "success" in row:
            curve.add(steps=row["control_steps"], seconds=now, success=row["success"], error=row["success_error"])
        if now > seconds:
            raise OutOfTime

    try:
        train(training, watch)
    except OutOfTime:
        print(f"{curve.file.stem}: out of time")
    curve.final = look(task, training.policy, HELD_OUT, "held out")
    curve.save()


def ppo(task: Insertion) -> Any:
    from stable_baselines3 import PPO

    from costate.tasks.insertion.vector_environment import InsertionVecEnv

    network = {"net_arch": [256], "activation_fn": torch.nn.Tanh, "log_std_init": -1.5}
    env = InsertionVecEnv(task, 256, rewards=REWARDS)
    return PPO(
        "MlpPolicy",
        env,
        LEARNING_RATE,
        n_steps=40,
        batch_size=1024,
        n_epochs=8,
        policy_kwargs=network,
        device="cpu",
        seed=0,
    )


def sac(task: Insertion) -> Any:
    from stable_baselines3 import SAC

    from costate.tasks.insertion.vector_environment import InsertionVecEnv

    env = InsertionVecEnv(task, 64, rewards=REWARDS)
    return SAC(
        "MlpPolicy",
        env,
        LEARNING_RATE,
        ent_coef="auto_0.02",
        buffer_size=1_000_000,
        learning_starts=64 * 80,
        batch_size=256,
        gradient_steps=8,
        policy_kwargs={"net_arch": [256], "activation_fn": torch.nn.Tanh},
        device="cpu",
        seed=0,
    )


def reinforcement(make: Callable[[Insertion], Any], chunk: int) -> Callable[[Insertion, Curve, float, bool], None]:
    """Train with stable-baselines3, `chunk` control steps at a time, then look."""

    def method(task: Insertion, curve: Curve, seconds: float, smoke: bool) -> None:
        model, weights = make(task), curve.file.with_suffix(".safetensors")
        if curve.points:
            restore(model, weights, int(curve.points[-1]["steps"]))

        def controller(observation: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(model.predict(observation.numpy(), deterministic=True)[0])

        while curve.seconds < seconds:
            share = curve.seconds / seconds
            model.env.batch.funnel = min(1.0, share / FUNNEL_RAMP)
            rate = LEARNING_RATE * max(1 - share, 0.05)
            model.lr_schedule = lambda _, rate=rate: rate
            begun = time.process_time()
            model.learn(chunk // 16 if smoke else chunk, reset_num_timesteps=False)
            spent = curve.seconds + time.process_time() - begun
            write_tensors(weights, flat(model.get_parameters()))
            curve.add(steps=model.num_timesteps, seconds=spent, **look(task, controller, WATCHED, "watch"))
        curve.final = look(task, controller, HELD_OUT, "held out")
        curve.save()

    return method


def flat(value: Any, name: str = "") -> dict[str, torch.Tensor]:
    """The tensors in nested dictionaries, by path: safetensors instead of pickles."""
    if isinstance(value, torch.Tensor):
        return {name: value.detach().clone()}
    if not isinstance(value, dict):
        return {}
    return {k: t for key, inner in value.items() for k, t in flat(inner, f"{name}/{key}" if name else str(key)).items()}


def restore(model: Any, file: Path, steps: int) -> None:
    """Weights and Adam's moments. SAC's replay buffer starts empty, and is filled again first."""
    tensors, known = read_tensors(file)[0], model.get_parameters()
    for part, state in known.items():
        mine = {k.removeprefix(f"{part}/"): t for k, t in tensors.items() if k.startswith(f"{part}/")}
        if "state" not in state:
            known[part] = mine
            continue
        for path, tensor in mine.items():  # state/PARAMETER/moment
            _, parameter, moment = path.split("/")
            state["state"].setdefault(int(parameter), {})[moment] = tensor
    model.set_parameters(known)
    model.num_timesteps = steps
    if hasattr(model, "learning_starts"):
        model.learning_starts += steps


METHODS = {
    "back-propagation": back_propagation,
    "PPO": reinforcement(ppo, 163_840),
    "SAC": reinforcement(sac, 40_960),
}


# --- results ----------------------------------------------------------------------------------------------------------


def tables(curves: dict[str, Curve]) -> tuple[harness.Table, ...]:
    ends, firsts = [], []
    for name, c in curves.items():
        last, best = c.points[-1], min(p["error"] for p in c.points)
        success = f"{100 * c.final['success']:.1f} %"
        ends.append((name, int(last["steps"]), last["seconds"] / 60, success, c.final["error"], best))
        crossed = [c.reached(level) for level in LEVELS]
        cells = ["never" if p is None else f"{p['steps'] / 1e6:.2f} M, {p['seconds']:.0f} s" for p in crossed]
        firsts.append((name, *cells))
    end = harness.Table(
        "At the end of the budget",
        ("method", "control steps", "minutes", "success", "mean error [mm]", "best mean error on the way [mm]"),
        tuple(ends),
        f"Success and error of {HELD_OUT} held-out episodes, in the world with contact. Minutes of processor time, one thread. "
        + _caution(curves),
    )
    levels = tuple(f"{100 * level:.0f} %" for level in LEVELS)
    first = harness.Table(
        "Control steps and time to a success rate",
        ("method", *levels),
        tuple(firsts),
        f"The first look, at {WATCHED} episodes, from which on none was below. ![learning curves](plots/insertion_rl.png)",
    )
    return end, first


TRIED = (
    "One run of each method. The recipe of back-propagation comes from many trials by hand. PPO had three settings (learning "
    "rate and its fall, initial noise), SAC three (batch, entropy), the rewards four forms; the last ones tried are shown. "
    "Both bring the bottle near the socket's mouth or not even there, and never into it. With more care both may do better."
)


def _caution(curves: dict[str, Curve]) -> str:
    """Explain what the figures do not say."""
    ours = curves.get("back-propagation")
    most = ours.points[-1]["steps"] if ours else 0
    last = {name: c.points[-1]["steps"] for name, c in curves.items()}
    short = ", ".join(f"{name} {n / 1e6:.2g} M" for name, n in last.items() if n < most)
    if not short:
        return TRIED
    return (
        f"Where a method made fewer control steps than back-propagation's {most / 1e6:.2g} M ({short}), its budget of processor "
        f"time ended first: it may still get there. {TRIED}"
    )


def plot(curves: dict[str, Curve], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), dpi=110)
    for name, c in curves.items():
        steps = [p["steps"] for p in c.points]
        left.semilogx(steps, [100 * p["success"] for p in c.points], marker=".", label=name)
        right.loglog(steps, [p["error"] for p in c.points], marker=".", label=name)
    left.set(xlabel="control steps", ylabel="success [%]", ylim=(-3, 103))
    right.set(xlabel="control steps", ylabel="mean error [mm]")
    right.axhline(0.5, color="grey", linestyle=":", linewidth=1)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    plt.close(figure)


def main() -> None:
    def more(parser: Any) -> None:
        parser.add_argument("--minutes", type=float, default=10.0, help="processor time for each method, in all")
        parser.add_argument("--folder", type=Path, default=Path("out/study_rl"), help="where runs are kept")
        parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the learning curves")

    chosen = harness.options(__doc__ or "", list(METHODS), more)
    folder, minutes = chosen.rest.folder, chosen.rest.minutes
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    task = Insertion(InsertionOptions().unlimited())
    for name in chosen.only:
        curve = Curve.open(folder / f"{name}.json")
        METHODS[name](task, curve, 60 * minutes, chosen.smoke)
    found = {name: Curve.open(folder / f"{name}.json") for name in METHODS}
    found = {name: c for name, c in found.items() if c.points and c.final}
    facts = harness.machine(**{p: version(p) for p in ("stable_baselines3", "gymnasium")})
    report = harness.Report("Against reinforcement learning", "make study-rl", facts, tables(found))
    harness.publish(report, chosen)
    if chosen.json:
        chosen.json.write_text(
            json.dumps(asdict(report) | {"curves": {n: c.points for n, c in found.items()}}, indent=1)
        )
    if chosen.rest.plot:
        plot(found, chosen.rest.plot)


if __name__ == "__main__":
    main()
