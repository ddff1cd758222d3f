"""Optimisers: iLQR beside finite differences of MuJoCo and beside Crocoddyl, a step of Gauss-Newton, descents side by side.

    python -m benchmarks.bench_optimise [--smoke] [--json FILE] [--markdown docs/benchmarks.md]
                                        [--only ilqr crocoddyl step descent]

Crocoddyl needs packages of its own: it is installed into an environment in out/crocoddyl, once, and run from there. Where it
cannot be installed the table says why.
"""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import mujoco
import mujoco.rollout
import numpy as np
import torch

from benchmarks.measure.harness import Options, Report, Table, interleaved, machine, options, publish
from benchmarks.optimise.problems import Policy, Problem, arm, quadruped
from benchmarks.sim.mujoco_scene import MujocoWorld
from benchmarks.sim.mujoco_scene import Options as MujocoOptions
from costate.optimise import (
    GaussNewtonOptions,
    GradientOptions,
    ILQROptions,
    Solution,
    gauss_newton,
    gradient,
    ilqr,
)
from costate.optimise.gauss_newton import Problem as LeastSquares
from costate.optimise.solution import Run
from costate.optimise.unknowns import Unknowns

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parent / "out" / "crocoddyl"
CROCODDYL = "crocoddyl==3.2.1", "pin==4.0.0", "libpinocchio==4.0.0"
"""It does not say which Pinocchio it was built with: with 4.1 it crashes as soon as a frame is differentiated."""


def problems(smoke: bool) -> list[Problem]:
    return [arm(20)] if smoke else [arm(), quadruped()]


# --- one iteration of iLQR --------------------------------------------------------------------------------------------


def ours(problem: Problem) -> dict[str, Callable[[], object]]:
    """The parts of one iteration, as calls."""
    motions = problem.motions()
    model = motions._expand()
    k, K_T, _ = motions._backward(*model)
    nobody = torch.zeros(1, dtype=torch.bool)
    nothing = torch.zeros(1, dtype=torch.float64)
    return {
        "derivatives": motions._expand,
        "backward": lambda: motions._backward(*model),
        "forward": lambda: motions._try((1.0,), k, K_T, nothing, nothing, nobody),
    }


def with_mujoco(problem: Problem, centered: bool) -> dict[str, Callable[[], object]]:
    """The same iteration with MuJoCo's step and finite differences; cost and backward pass are ours, in no time of MuJoCo's."""
    chosen = MujocoOptions("Newton", 100, 1e-8, cone="pyramidal", limits=False, joint_friction=False)
    theirs = MujocoWorld(problem.world, chosen)
    model, data = theirs.model, theirs.data
    A, B = np.zeros((2 * model.nv, 2 * model.nv)), np.zeros((2 * model.nv, model.nu))
    states = problem.motions().x[0, :-1].numpy()
    there = [theirs.to_theirs(x) for x in states]
    u = problem.guess().numpy()
    start = theirs.full_physics_state(problem.start.numpy())[None]
    motions = problem.motions()
    g = motions._cost.stage.expansion

    def derivatives() -> None:
        for (q, v), control in zip(there, u, strict=True):
            data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, control
            mujoco.mjd_transitionFD(model, data, 1e-6, centered, A, B, None, None)
        g([motions.x[:, :-1], motions.u])

    return {
        "derivatives": derivatives,
        "backward": ours(problem)["backward"],
        "forward": lambda: mujoco.rollout.rollout(model, data, start, np.ascontiguousarray(u[None])),
    }


PARTS = "derivatives", "backward", "forward"


def iteration_row(name: str, seconds: dict[str, float]) -> tuple[str | float, ...]:
    return name, *(1e3 * seconds[p] for p in PARTS), 1e3 * sum(seconds[p] for p in PARTS)


def ilqr_table(chosen: Options) -> list[Table]:
    tables = []
    for problem in problems(chosen.smoke):
        ways = {
            "Costate": ours(problem),
            "MuJoCo, one-sided differences": with_mujoco(problem, False),
            "MuJoCo, central differences": with_mujoco(problem, True),
        }
        cases = {f"{way}:{part}": run for way, parts in ways.items() for part, run in parts.items()}
        best = interleaved(cases, 2 if chosen.smoke else 10)
        found = {way: {p: best[f"{way}:{p}"] for p in PARTS} for way in ways}
        whole = {way: sum(times.values()) for way, times in found.items()}
        rows = [(*iteration_row(way, times), whole[way] / whole["Costate"]) for way, times in found.items()]
        note = (
            f"One iteration, {problem.steps} steps, one problem, one thread [ms]: derivatives of all steps and of the cost, "
            "backward pass, one forward pass. With MuJoCo the cost and the backward pass are the same compiled ones; its forward "
            "pass is its own rollout in C++, without feedback."
        )
        columns = ("", *PARTS, "iteration", "times Costate")
        tables.append(
            Table(f"iLQR with exact derivatives and with differences: {problem.name}", columns, tuple(rows), note)
        )
    return tables


# --- Crocoddyl --------------------------------------------------------------------------------------------------------


def crocoddyl_python(install: bool = True) -> Path:
    """The interpreter of its environment, which is made if it is not there; RuntimeError with the reason if that fails."""
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / "installed").exists():
        if not install:
            raise RuntimeError("--smoke installs nothing: run this once without it")
        print("installing crocoddyl into out/crocoddyl ...", file=sys.stderr, flush=True)
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *CROCODDYL]
        for command in (pip, [python, "-c", "import crocoddyl"]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{' '.join(CROCODDYL)} does not install: {done.stderr.strip().splitlines()[-1]}")
        (ENVIRONMENT / "installed").write_text(" ".join(CROCODDYL))
    return python


def crocoddyl(problem: Problem, rounds: int) -> dict[str, float]:
    task = problem.task(ENVIRONMENT / "robot.urdf", rounds=rounds, iterations=50, tolerance=1e-6, regularization=1e-6)
    one = dict(os.environ, OMP_NUM_THREADS="1")
    done = subprocess.run(
        [crocoddyl_python(), HERE / "optimise" / "crocoddyl_worker.py"],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        env=one,
    )
    if done.returncode:
        raise RuntimeError(f"crocoddyl failed on {problem.name}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def crocoddyl_table(chosen: Options) -> list[Table]:
    title = "iLQR beside Crocoddyl's FDDP"
    try:
        crocoddyl_python(install=not chosen.smoke)
    except RuntimeError as error:
        return [Table(title, ("", "why"), (("not measured", str(error)),), "Crocoddyl is not on this machine.")]
    rows = []
    for problem in problems(chosen.smoke):
        rounds = 5 if chosen.smoke else 30
        theirs = crocoddyl(problem, rounds)
        best = interleaved(ours(problem), rounds // 3)
        again = crocoddyl(problem, rounds)
        theirs = {k: min(theirs[k], again[k]) if k in PARTS else theirs[k] for k in theirs}
        known = problem.world, problem.cost, problem.start, problem.guess()
        found = ilqr(*known, ILQROptions(iterations=50), states0=problem.still())
        side = {"Costate": (best, found.iterations, float(found.loss))}
        side["Crocoddyl"] = (theirs, int(theirs["iterations"]), theirs["cost"])
        for name, (times, iterations, cost) in side.items():
            rows.append((f"{problem.name}: {name}", *iteration_row("", times)[1:], iterations, cost))
    note = (
        "The same robot, start, weights and step, one problem, one thread [ms]. The arm's problem is the same in both. For the "
        "quadruped Crocoddyl is told which feet stand, and holds them by equality constraints; Costate finds contact and "
        "friction in every step."
    )
    columns = ("", *PARTS, "iteration", "iterations", "cost")
    return [Table(title, columns, tuple(rows), note)]


# --- Gauss-Newton -----------------------------------------------------------------------------------------------------


def step_table(chosen: Options) -> list[Table]:
    """One step of Gauss-Newton against as many gradients as it has CG iterations."""
    rows = []
    for name, residuals, module in least_squares(chosen.smoke):
        cg = 5 if chosen.smoke else 50
        step = GaussNewtonOptions(iterations=1, cg_iterations=cg, cg_tolerance=0.0, damping=1.0)
        unknowns = Unknowns(module)
        line = LeastSquares(residuals, unknowns, step, Run("", step)).linearize(unknowns.rows(None))
        seed = torch.randn_like(line.residual)

        def whole(residuals=residuals, module=module, step=step) -> None:
            gauss_newton(residuals, deepcopy(module), step)

        def one_gradient(residuals=residuals, module=module) -> None:
            module.zero_grad()
            (sum(r.square().sum() for r in residuals(module).values()) / 2).backward()

        cases = {
            "step": whole,
            "backward": lambda line=line, seed=seed: line.transposed(seed),
            "gradient": one_gradient,
        }
        best = interleaved(cases, 1 if chosen.smoke else 8, 0.2)
        weights = sum(p.numel() for p in module.parameters())
        ratios = (best["step"] / (cg * best["backward"]), best["step"] / (cg * best["gradient"]))
        rows.append((name, weights, cg, *(1e3 * best[k] for k in cases), *ratios))
    note = (
        "A whole step [ms]: two linearisations, the trial, and CG. The last two columns divide it by the CG iterations times one "
        "backward pass alone, and times one gradient as descent needs it, forward and backward. Every CG iteration makes one "
        "product with J and one with J^T, so 2 is what the first ratio tends to where both cost as much as a backward pass."
    )
    columns = ("", "weights", "CG iterations", "step", "backward", "gradient", "per backward pass", "per gradient")
    return [Table("One step of matrix-free Gauss-Newton", columns, tuple(rows), note)]


def least_squares(smoke: bool) -> list[tuple[str, Callable, torch.nn.Module]]:
    policy = Policy(5, 8) if smoke else Policy()
    X = torch.randn(64 if smoke else 1024, 4, dtype=torch.float64)
    fit = deepcopy(policy.net)
    return [
        (f"policy through {policy.steps} steps, batch {len(policy.start)}", lambda m: m.residuals(), policy),
        (f"the same network fitted to {len(X):,} samples", lambda m: {"fit": m(X) - torch.sin(X[:, :2])}, fit),
    ]


def descent_table(chosen: Options) -> list[Table]:
    """Measure the iterations and seconds that reach a hundredth of the loss."""
    policy = Policy(5, 8) if chosen.smoke else Policy()
    first = deepcopy(policy)

    def loss(m: Policy) -> torch.Tensor:
        return sum((r.square().sum() for r in m.residuals().values()), torch.zeros(())) / 2

    start = float(loss(first).detach())
    most, steps = (3, 1) if chosen.smoke else (300, 30)
    least = float(gauss_newton(lambda m: m.residuals(), deepcopy(first), GaussNewtonOptions(iterations=steps)).loss)
    target = least + 0.01 * (start - least)
    ways: dict[str, Callable[[], Solution]] = {
        "Gauss-Newton": lambda: gauss_newton(
            lambda m: m.residuals(), deepcopy(first), GaussNewtonOptions(iterations=most, target=target)
        ),
        "L-BFGS": lambda: gradient(
            loss, deepcopy(first), GradientOptions(method="lbfgs", iterations=most, target=target)
        ),
    }
    for lr in (1e-2, 1e-3):
        tried = GradientOptions(lr=lr, iterations=most, target=target)
        ways[f"Adam, lr {lr:g}"] = lambda tried=tried: gradient(loss, deepcopy(first), tried)
    for lr in (1e-3, 1e-4):
        tried = GradientOptions(method="sgd", lr=lr, iterations=most, target=target)
        ways[f"gradient descent, lr {lr:g}"] = lambda tried=tried: gradient(loss, deepcopy(first), tried)
    rows = []
    for name, solve in ways.items():
        s = solve()
        rows.append((name, "yes" if s.converged else "no", s.iterations, s.evaluations, s.seconds, float(s.loss)))
    note = (
        f"A policy of 9,986 weights, {first.steps} steps, batch {len(first.start)}; from a loss of {start:.4g} to {target:.4g}, "
        f"one hundredth of the way above the {least:.4g} that {steps} steps of Gauss-Newton reach; at most {most} iterations."
    )
    columns = ("", "reached", "iterations", "evaluations", "seconds", "loss")
    return [Table("Gauss-Newton and descent on a policy", columns, tuple(rows), note)]


TABLES = {
    "ilqr": ilqr_table,
    "crocoddyl": crocoddyl_table,
    "step": step_table,
    "descent": descent_table,
}


def main() -> None:
    chosen = options("Benchmark of the optimisers.", list(TABLES))
    torch.set_num_threads(1)
    tables: list[Table] = []
    for name in chosen.only:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        tables += TABLES[name](chosen)
    facts = machine(mujoco=mujoco.__version__, load=f"{os.getloadavg()[0]:.1f}")
    command = "python -m benchmarks.bench_optimise --markdown docs/benchmarks.md"
    publish(Report("Optimisers", command, facts, tuple(tables)), chosen)


if __name__ == "__main__":
    main()
