"""A policy for a task of cloth: a network from what is seen of a problem to the numbers that solve it, without a search.

Its weights are found by the gradients of roll-outs of random problems; it is judged with others, by one roll-out each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from costate.tasks.cloth.problem import ClothFound, ClothProblem, ClothTask, Tell, found_of
from costate.train.controller import NOTE, POLICY
from costate.train.network import Network
from costate.train.policy import Policy

PRACTICE = 1_000_000
"""Number of the first problem that policies are trained with; those before it are for judging."""

Answer = Callable[[ClothProblem], Tensor]
"""Function from a problem to numbers z (n)."""


@dataclass(frozen=True)
class Practice:
    """The settings of a training."""

    iterations: int = 200
    batch: int = 8
    """Problems of an iteration, each of them met once."""
    rate: float = 3e-3
    """Largest step of a weight, in the first iteration; it falls to zero along a quarter of a cosine."""
    clip: float = 1.0
    """Largest gradient of the loss of a problem by the numbers, in shares of half their bounds."""
    hidden: int = 64
    seed: int = 0
    """Seed of the first weights and of the problems."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A policy and how it was found."""

    policy: Policy
    losses: list[float]
    """Median of half the mean of the squares of the residuals, in every iteration."""
    dropped: int
    """Roll-outs that failed, or whose gradients were not finite."""


def numbers_of(policy: Policy, problems: Sequence[ClothProblem]) -> Tensor:
    """Return the numbers z (problems, n) that a policy gives for problems, within their bounds."""
    low, high = (torch.as_tensor(np.stack([p.bounds[k] for p in problems])) for k in range(2))
    seen = torch.tensor([list(p.seen.values()) for p in problems], dtype=torch.float64)
    return low + (high - low) * (1 + policy(seen)) / 2


def first_guess(problem: ClothProblem) -> Tensor:
    """Return the numbers (n) with which a search begins."""
    return torch.as_tensor(problem.first)


def loss_of(problem: ClothProblem, z: Tensor) -> Tensor:
    """Return half the mean of the squares of the residuals of numbers z (n)."""
    return problem.residuals(z, problem.play(z)).square().mean() / 2


def untrained(problem: ClothProblem, practice: Practice) -> Policy:
    """Return a policy for problems like one; it begins near the middle of the bounds."""
    g = torch.Generator().manual_seed(practice.seed)
    return Policy(len(problem.seen), len(problem.first), practice.hidden, g).double()


def train(task: ClothTask, practice: Practice, tell: Tell) -> Trained:
    """Train a policy with random problems that it meets once each."""
    first = PRACTICE * (1 + practice.seed)
    policy = untrained(task.problem(first), practice)
    optimiser = torch.optim.Adam(policy.parameters(), lr=practice.rate)
    plan = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda k: np.cos(np.pi / 2 * k / practice.iterations))
    losses, dropped = [], 0
    for k in range(practice.iterations):
        problems = [task.problem(first + practice.batch * k + j) for j in range(practice.batch)]
        optimiser.zero_grad()
        good = backward(policy, problems, practice.clip)
        optimiser.step()
        plan.step()
        dropped += len(problems) - len(good)
        losses.append(float(np.median(good)) if good else float("nan"))
        tell(f"iteration {k + 1} of {practice.iterations}, loss {losses[-1]:.4g}, {dropped} roll-outs dropped")
    return Trained(policy, losses, dropped)


def backward(policy: Policy, problems: Sequence[ClothProblem], clip: float) -> list[float]:
    """Add the gradient of the mean loss of problems to those of the weights; return the losses of all roll-outs that have one."""
    z = numbers_of(policy, problems)
    every = [_slope(p, each, clip) for p, each in zip(problems, z.detach(), strict=True)]
    good = [k for k, found in enumerate(every) if found is not None]
    if good:
        slopes = torch.stack([found[1] for found in every if found is not None])
        (slopes * z[good]).sum().div(len(good)).backward()
    return [found[0] for found in every if found is not None]


def _slope(problem: ClothProblem, z: Tensor, clip: float) -> tuple[float, Tensor] | None:
    """Return the loss of numbers z (n), and its gradient, made shorter where it is too long; None if there is none."""
    z = z.clone().requires_grad_()
    try:
        loss = loss_of(problem, z)
    except FloatingPointError:
        return None
    (slope,) = torch.autograd.grad(loss, z)
    half = torch.as_tensor(problem.bounds[1] - problem.bounds[0]) / 2
    length = (slope * half).norm()
    if not bool(torch.isfinite(length)):
        return None
    return float(loss.detach()), slope * (clip / length).clamp(max=1)


def judge(task: ClothTask, numbers: Sequence[int], answer: Answer, tell: Tell) -> list[ClothFound | None]:
    """Judge answers to problems by one roll-out each; None where it fails."""
    found = []
    for k in numbers:
        tell(f"problem {k} is judged")
        with suppress(FloatingPointError), torch.no_grad():
            problem = task.problem(k)
            found.append(_judged(task, problem, answer(problem)))
            continue
        found.append(None)
    return found


def _judged(task: ClothTask, problem: ClothProblem, z: Tensor) -> ClothFound:
    assert problem.judge is not None
    motion = problem.play(z)
    facts, solved = problem.judge(motion)
    loss = float(problem.residuals(z, motion).square().mean()) / 2
    more, solved = task.check(problem, motion, solved)
    return found_of(problem, motion, facts | more, solved, [loss])


def save(policy: Policy, name: str, problem: ClothProblem, folder: Path) -> None:
    """Write a policy to a folder, from which `costate.load_policy` reads it: a function from what is seen to the numbers z."""
    from costate.core.files import write_json
    from costate.core.tensors import write_tensors

    low, high = problem.bounds
    inputs = tuple((each, "1") for each in problem.seen)
    outputs = tuple((f"z{k + 1}", "1") for k in range(len(low)))
    about = f"What is seen of a problem of {name}, to the numbers that solve it."
    network = Network.of(policy, inputs, outputs, (low + high) / 2, (high - low) / 2, about)
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / POLICY, network.tensors())
    write_json(folder / NOTE, {"task": name} | network.note())
