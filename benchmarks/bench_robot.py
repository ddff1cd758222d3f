"""Benchmark of robots: kinematics and dynamics against Pinocchio and differentiable-robot-model, and the time to start.

    python -m benchmarks.bench_robot [--smoke] [--json FILE] [--markdown FILE] [--only TABLE ...]
    python -m benchmarks.bench_robot --markdown docs/benchmarks.md         # what the docs show

Every library gets the same robot, from a URDF that we write, without passive forces, and results are compared before anything is
timed. Ours go through torch, gradients through autograd, all in float64 unless said otherwise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
import torch

import costate as cs
from benchmarks.measure.harness import ROOT, Options, Report, Table, interleaved, machine, options, publish, threads
from benchmarks.robot.libraries import DifferentiableRobotModel, Pinocchio, bare
from benchmarks.robot.models import ROBOTS, legged
from costate.model import Model

BATCHES = (1, 64, 1024, 4096)
PEER_SAMPLES = 128
"""Number of states that the other side loops over: its time per sample does not depend on it."""

FUNCTIONS = {
    "pose": "pose of the last link",
    "forward_kinematics": "poses of all links",
    "inverse_dynamics": "inverse dynamics (RNEA)",
    "mass_matrix": "mass matrix (CRBA)",
    "forward_dynamics": "forward dynamics (ABA)",
    "gradient": "value and gradient of forward dynamics",
}
State = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def states(robot: cs.Robot, batch: int, dtype: torch.dtype = torch.float64) -> State:
    random = torch.Generator().manual_seed(0)
    v, tau = (torch.randn(batch, robot.nv, dtype=torch.float64, generator=random) for _ in range(2))
    q = robot.random_configuration(batch, generator=random, dtype=torch.float64)
    return q.to(dtype), v.to(dtype), tau.to(dtype)


def ours(robot: cs.Robot, function: str, x: State) -> Callable[[], object]:
    q, v, _ = x
    if function == "pose":
        return lambda: robot.forward_kinematics(q, robot.model.links[-1].name)
    if function != "gradient":
        args = {"forward_kinematics": (q,), "mass_matrix": (q,)}.get(function, x)
        method = getattr(robot, function)
        return lambda: method(*args)
    leaves = [t.clone().requires_grad_() for t in x]
    seed = torch.ones_like(v)
    return lambda: torch.autograd.grad(robot.forward_dynamics(leaves[0], leaves[1], leaves[2]), leaves, seed)


# --- tables -----------------------------------------------------------------------------------------------------------


def robot_table(name: str, model: Model, chosen: Options) -> Table:
    """All functions of one robot at all batch sizes, against Pinocchio."""
    robot = cs.Robot(bare(model))
    peer = Pinocchio(robot.model, *(t.numpy() for t in states(robot, PEER_SAMPLES)))
    check(robot, peer)
    batches = BATCHES[:2] if chosen.smoke else BATCHES
    rows = []
    for function, title in FUNCTIONS.items():
        one, two, python, cpp = times(robot, peer, function, batches, 3 if chosen.smoke else 15)
        last = one[-1]
        faster = f"{python / last:.0f}" if cpp is None else f"{python / last:.0f} ({cpp / last:.0f})"
        rows.append((title, *one, two, python, "-" if cpp is None else cpp, faster))
    columns = (
        "",
        *(f"batch {b}" for b in batches),
        f"{batches[-1]}, two threads",
        "Pinocchio",
        "its C++",
        "times faster",
    )
    note = (
        f"{robot.nq} coordinates, {robot.nv} velocities. Nanoseconds per sample, one thread where not said otherwise. Pinocchio is "
        "called from Python, sample by sample; its C++ is timed where it has a batched loop of its own (`abaInParallel` and "
        "`rneaInParallel`, one thread). Its gradient is `computeABADerivatives`. Last column: at the largest batch, one thread, "
        "against Pinocchio from Python (against its C++)."
    )
    return Table(name, columns, tuple(rows), note + fresh_memory(robot.nv, batches[-1]))


def fresh_memory(nv: int, batch: int) -> str:
    """A remark where results are so large that the system hands out new pages for each: that is not our time."""
    size = 8 * batch * nv**2
    if size < 2**23:
        return ""
    with threads(1):
        seconds = interleaved({"fill": lambda: torch.empty(batch, nv, nv, dtype=torch.float64).fill_(0)}, 5)["fill"]
    return (
        f" The mass matrices of batch {batch} are {size / 2**20:.0f} MB: {1e9 * seconds / batch:,.0f} ns per sample is what "
        "it takes to allocate and fill as much, without computing anything; Pinocchio writes to the same matrix again and again."
    )


def check(robot: cs.Robot, peer: Pinocchio) -> None:
    """Both compute the same accelerations."""
    found, expected = robot.forward_dynamics(*states(robot, PEER_SAMPLES)).numpy(), peer.accelerations()
    error = np.abs(found - expected).max() / np.abs(expected).max()
    if error > 1e-9:
        raise SystemExit(f"{robot.name}: accelerations differ from Pinocchio's by {error:.1e}; nothing measured")


def times(
    robot: cs.Robot, peer: Pinocchio, function: str, batches: tuple[int, ...], rounds: int
) -> tuple[list[float], float, float, float | None]:
    """Nanoseconds per sample: ours per batch, ours with two threads, Pinocchio from Python, in C++."""
    cases: dict[str, Callable[[], object]] = {
        str(batch): ours(robot, function, states(robot, batch)) for batch in batches
    }
    sizes = dict(zip(cases, batches, strict=True)) | {"python": PEER_SAMPLES, "cpp": PEER_SAMPLES}
    cases["python"] = peer.from_python(function)
    cpp = peer.in_cpp(function)
    if cpp is not None:
        cases["cpp"] = cpp
    with threads(1):
        found = interleaved(cases, rounds)
    with threads(2):
        both = interleaved({"two": cases[str(batches[-1])]}, rounds)["two"]
    scaled = {name: 1e9 * seconds / sizes[name] for name, seconds in found.items()}
    return [scaled[str(b)] for b in batches], 1e9 * both / batches[-1], scaled["python"], scaled.get("cpp")


def single_sample(chosen: Options) -> Table:
    """One UR5 sample from NumPy arrays and from torch."""
    robot = cs.Robot(bare(ROBOTS["ur5"]()))
    x = [t[0].numpy() for t in states(robot, 1)]
    peer = Pinocchio(robot.model, *(a[None] for a in x))
    forward, whole = robot.kernel("forward_dynamics"), robot.kernel("forward_dynamics_jacobians").narrow
    backward = forward.vjp()
    named = dict(zip(("q", "v", "tau"), x, strict=True))
    bound = forward.bind(**named)
    seeded = {**named, "a_bar": np.ones(robot.nv)}
    bound_back = bound.vjp()
    tensors = dict(zip(("q", "v", "tau"), states(robot, 1), strict=True))
    seed = {"a_bar": torch.ones(1, robot.nv, dtype=torch.float64)}
    cases = {
        "bound": bound,
        "numpy": lambda: forward.numpy(**named),
        "torch": ours(robot, "forward_dynamics", states(robot, 1)),
        "pinocchio": peer.from_python("forward_dynamics"),
        "bound_back": lambda: (bound(), bound_back()),
        "numpy_back": lambda: (forward.numpy(**named), backward.numpy(**seeded)),
        "torch_back": lambda: (forward(**tensors), backward(**tensors, **seed)),
        "autograd": ours(robot, "gradient", states(robot, 1)),
        "empty": empty_gradient(states(robot, 1)),
        "product": product_gradient(states(robot, 1)),
        "least": least_gradient(robot, states(robot, 1)),
        "bound_whole": whole.bind(**named),
        "numpy_whole": lambda: whole.numpy(**named),
        "torch_whole": lambda: robot.forward_dynamics_jacobians(tensors["q"], tensors["v"], tensors["tau"]),
        "pinocchio_whole": peer.from_python("gradient"),
    }
    rounds = (3 if chosen.smoke else 60, 0.01)
    with threads(1):
        found = {name: 1e6 * s for name, s in interleaved(cases, *rounds, time.process_time).items()}
    ways = ("bound", "numpy", "torch", "pinocchio")
    rows = (
        ("forward dynamics", *(found[w] for w in ways)),
        ("value and gradient", *(found[f"{w}_back"] for w in ways[:3]), "-"),
        ("value and gradient by autograd", "-", "-", found["autograd"], "-"),
        ("the same, the least in Python", "-", "-", found["least"], "-"),
        ("the same, nothing computed", "-", "-", found["empty"], "-"),
        ("a product of two tensors by autograd", "-", "-", found["product"], "-"),
        ("value and whole Jacobians", *(found[f"{w}_whole"] for w in ways)),
    )
    columns = ("", "bound arrays", "NumPy call", "torch call", "Pinocchio")
    note = (
        "Microseconds of processor time per call from Python, one thread. The least in Python: `torch.autograd.grad` of a function "
        "that does nothing but save its three tensors and call the compiled code, with everything known beforehand, for these "
        "shapes and for one backward pass alone. Nothing computed: the same without the calls. A product: `torch.autograd.grad` of "
        "torch's own `x * y`, all of it in C++ but for `torch.autograd.grad` itself. A gradient without autograd is a call of the "
        "kernel and one of its `vjp`. Pinocchio has no gradients but those of whole Jacobians."
    )
    return Table("One sample of the UR5", columns, rows, note)


def empty_gradient(x: State) -> Callable[[], object]:
    """A gradient by autograd in which nothing is computed."""

    class Empty(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):  # pyright: ignore
            ctx.save_for_backward(*tensors)
            return tensors[1].detach()

        @staticmethod
        def backward(ctx, bar):  # pyright: ignore
            return (bar,) * len(ctx.saved_tensors)

    leaves = [t[:, :6].clone().requires_grad_() for t in x]
    seed = torch.ones_like(leaves[1])
    record = super(torch.autograd.Function, Empty).apply  # pyright: ignore[reportAttributeAccessIssue]
    return lambda: torch.autograd.grad(record(*leaves), leaves, seed)


def product_gradient(x: State) -> Callable[[], object]:
    """A gradient of torch's own, of a product."""
    leaves = [t[:, :6].clone().requires_grad_() for t in x[:2]]
    seed = torch.ones_like(leaves[1])
    return lambda: torch.autograd.grad(leaves[0] * leaves[1], leaves, seed)


def least_gradient(robot: cs.Robot, x: State) -> Callable[[], object]:
    """A gradient by autograd that asks nothing, and does nothing but call compiled code."""
    leaves = [t.clone().requires_grad_() for t in x]
    tensors = [t.detach() for t in leaves]
    forward = robot.kernel("forward_dynamics")
    (a,), lead = forward.run(tensors), tensors[0].shape[:-1]
    backward, seed = forward.derivative("vjp_given", (0, 1, 2), (0,)), torch.ones_like(a)
    backward.run([*tensors, a, seed], (lead,) * 3)
    there, back = forward._quick.plan, backward._quick.plan
    assert there and back

    class Least(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):  # pyright: ignore
            (a,) = there.run(tensors)
            ctx.save_for_backward(*tensors, a)
            return a

        @staticmethod
        def backward(ctx, bar):  # pyright: ignore
            return tuple(back.run([*ctx.saved_tensors, bar]))

    record = super(torch.autograd.Function, Least).apply  # pyright: ignore[reportAttributeAccessIssue]
    return lambda: torch.autograd.grad(record(*leaves), leaves, seed)


def whole_jacobians(chosen: Options) -> Table:
    """All derivatives of forward dynamics at once, against Pinocchio's."""
    rows = []
    batches = (1, 64) if chosen.smoke else (1, 64, 1024, 4096)
    names = ["ur5", "laikago", "humanoid, 35 joints"][: 1 if chosen.smoke else 3]
    robots = {name: ROBOTS[name] for name in names} | ({} if chosen.smoke else legged())
    for name, make in robots.items():
        robot = cs.Robot(bare(make()))
        x = states(robot, PEER_SAMPLES)
        peer = Pinocchio(robot.model, *(t.numpy() for t in x))
        error = max(
            float(np.abs(mine.numpy() - theirs).max() / np.abs(theirs).max())
            for mine, theirs in zip(robot.forward_dynamics_jacobians(*x)[1:], peer.jacobians(), strict=True)
        )
        cases: dict[str, Callable[[], object]] = {"python": peer.from_python("gradient")}
        for batch in batches:
            y = states(robot, batch)
            cases[str(batch)] = lambda r=robot, y=y: r.forward_dynamics_jacobians(*y)
            cases[str(batch)]()
        with threads(1):
            found = interleaved(cases, 3 if chosen.smoke else 15, clock=time.process_time)
        theirs = 1e6 * found["python"] / PEER_SAMPLES
        each = [1e6 * found[str(b)] / b for b in batches]
        ratios = [f"{us:.3g} ({theirs / us:.2g}x)" for us in each]
        rows.append((f"{name}, {robot.nv} velocities", *ratios, theirs, f"{error:.0e}"))
    note = (
        "Microseconds of processor time per sample for accelerations and their derivatives in q (tangent space), v and tau "
        "(`robot.forward_dynamics_jacobians`), from torch, one thread; in brackets: times Pinocchio's speed, whose "
        "`computeABADerivatives` is called from Python for each sample. Talos and ANYmal are those of the package "
        "example-robot-data. Last column: largest difference from Pinocchio, relative to the largest entry."
    )
    columns = ("", *(f"batch {b}" for b in batches), "Pinocchio", "difference")
    return Table("Whole Jacobians of forward dynamics", columns, tuple(rows), note)


def against_drm(chosen: Options) -> Table:
    """differentiable-robot-model, one thread and two."""
    batch = 64 if chosen.smoke else 1024
    rows = []
    for name in ("ur5", "iiwa7"):
        robot = cs.Robot(bare(ROBOTS[name]()))
        x = states(robot, batch)
        peer = DifferentiableRobotModel(robot.model, *(t.numpy() for t in x))
        error = float((peer.accelerations().double() - robot.forward_dynamics(*x)).abs().max())
        narrow = states(robot, batch, torch.float32)
        for count in (1, 2):
            cases = {
                "value": ours(robot, "forward_dynamics", x),
                "gradient": ours(robot, "gradient", x),
                "value32": ours(robot, "forward_dynamics", narrow),
                "gradient32": ours(robot, "gradient", narrow),
                "their value": peer.accelerations,
                "their gradient": peer.gradient,
            }
            with threads(count):
                found = {k: 1e9 * s / batch for k, s in interleaved(cases, 3 if chosen.smoke else 10).items()}
            for kind, title in (("value", "forward dynamics"), ("gradient", "value and gradient")):
                mine, narrow_time, theirs = found[kind], found[f"{kind}32"], found[f"their {kind}"]
                label = f"{name}, {title}, {count} thread{'s' * (count > 1)}"
                rows.append((label, mine, narrow_time, theirs, f"{theirs / mine:.0f} ({theirs / narrow_time:.0f})"))
        print(f"{name}: accelerations differ by {error:.1e} from differentiable-robot-model's", file=sys.stderr)
    note = (
        f"Nanoseconds per sample at batch {batch}. differentiable-robot-model is in float32, all it has; in the last "
        "column against our float64 (our float32)."
    )
    columns = ("", "float64", "float32", "differentiable-robot-model", "times faster")
    return Table("Against differentiable-robot-model", columns, tuple(rows), note)


START = """
import json, sys, time
t = [time.perf_counter()]
import torch
t.append(time.perf_counter())
import costate as cs
from costate.robot import Robot
t.append(time.perf_counter())
from benchmarks.robot.models import ROBOTS
begin = time.perf_counter()
robot = Robot(ROBOTS[{name!r}]())
q, v, tau = (torch.zeros(64, n, dtype=torch.float64, requires_grad=True) for n in (robot.nq, robot.nv, robot.nv))
with torch.no_grad():
    q += robot.neutral(dtype=torch.float64)
robot.forward_dynamics(q, v, tau).sum().backward()
print(json.dumps([t[1] - t[0], t[2] - t[1], time.perf_counter() - begin]))
"""


def start_up(chosen: Options) -> Table:
    """Fresh processes: from nothing to the first gradient of forward dynamics."""
    rows = []
    names = ["ur5"] if chosen.smoke else ["ur5", "laikago", "humanoid, 35 joints"]
    for name in names:
        repeats = 1 if chosen.smoke or name.startswith("humanoid") else 3
        cold, warm = [], []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(fresh_process(name, cache))
                warm.append(fresh_process(name, cache))
        imports = min(x[1] for x in cold + warm)
        rows.append((name, imports, min(x[2] for x in cold), min(x[2] for x in warm)))
    note = (
        "Seconds. Import of costate once torch is imported; then from the name of the robot to its first gradient of forward "
        "dynamics, code for value and gradient included: with an empty cache, and in a second process."
    )
    return Table("From import to the first gradient", ("", "import", "cold", "with the cache"), tuple(rows), note)


def fresh_process(name: str, cache: str) -> list[float]:
    script = START.format(name=name)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=os.environ | {"COSTATE_CACHE": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


TABLES = ("robots", "single", "jacobians", "drm", "start")


def main() -> None:
    chosen = options(__doc__ or "", TABLES)
    tables: list[Table] = []
    if "robots" in chosen.only:
        tables += [robot_table(name, make(), chosen) for name, make in ROBOTS.items()]
    if "single" in chosen.only:
        tables.append(single_sample(chosen))
    if "jacobians" in chosen.only:
        tables.append(whole_jacobians(chosen))
    if "drm" in chosen.only:
        tables.append(against_drm(chosen))
    if "start" in chosen.only:
        tables.append(start_up(chosen))
    command = "python -m benchmarks.bench_robot --markdown docs/benchmarks.md"
    peers = {"pin": "pinocchio", "differentiable-robot-model": "differentiable-robot-model"}
    facts = machine() | {label: _version(package) for package, label in peers.items()}
    publish(Report("Robots", command, facts, tuple(tables)), chosen)


def _version(package: str) -> str:
    from importlib.metadata import version

    return version(package)


if __name__ == "__main__":
    main()
