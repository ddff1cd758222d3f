"""Contact problems of a world's states, and the solutions that `Hard` found, as arrays.

A kernel of the stages of a substep keeps what its solver is given and what it answers: masses, momentum, Jacobian, targets, bounds,
velocities, impulses; once for the impact of a substep, once for the motion that ends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import casadi as ca
import numpy as np
import torch

import costate as cs
from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.program import Var
from costate.sim.contact.hard.correct import Lift
from costate.sim.contact.hard.impact_time import until
from costate.sim.contact.hard.law import Block
from costate.sim.contact.hard.problem import Problem
from costate.sim.contact.hard.solve import Solver
from costate.sim.contact.hard.step import Clock, Stages
from costate.sim.step import step_inputs

NUMBERS = ("m", "p", "j", "t", "bounds", "first_v", "first_l", "v", "impulses", "residual")
"""Numbers that are kept of a problem: its numbers in the order of Problem.sizes, what the solver starts from, and what it finds."""
CHUNK = 1024
"""States at once."""


@dataclass(frozen=True)
class Problems:
    """Problems of one kind, and their solutions: M v = p + J' l, and the laws of all blocks."""

    kinds: tuple[str, ...]
    """Kind of every block: see hard/law.py."""
    rows: tuple[tuple[int, ...], ...]
    """Rows of every block; a contact has its normal first."""
    M: np.ndarray
    """Mass matrices, (b, nv, nv)."""
    J: np.ndarray
    """(b, n, nv)."""
    p: np.ndarray
    """Momenta without impulses, (b, nv)."""
    t: np.ndarray
    """Targets of the speeds of rows [m/s or rad/s], (b, n)."""
    bounds: np.ndarray
    """Friction coefficients or largest impulses, (b, blocks)."""
    first_v: np.ndarray
    first_l: np.ndarray
    """Velocities (b, nv) and impulses (b, n) that the solver starts from."""
    v: np.ndarray
    """Velocities of the solution, (b, nv)."""
    impulses: np.ndarray
    """Impulses of the solution, (b, n)."""
    residual: np.ndarray
    """Residual by the account of the solver [m/s or rad/s], (b,)."""

    def __len__(self) -> int:
        return len(self.p)

    def of(self, chosen: np.ndarray) -> Problems:
        """Return some of them. chosen: mask or numbers."""
        arrays = {f.name: getattr(self, f.name)[chosen] for f in fields(self) if f.name not in ("kinds", "rows")}
        return replace(self, **arrays)

    def save(self, file: Path) -> None:
        """Write all of it as .npz, for other solvers: kinds and rows are those of blocks, padded with -1."""
        rows = np.array([[*r, -1, -1][:3] for r in self.rows])
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("kinds", "rows")}
        np.savez_compressed(file, kinds=np.array(self.kinds), rows=rows, **arrays)

    @staticmethod
    def load(file: Path) -> Problems:
        with np.load(file) as found:
            given = dict(found)
        rows = tuple(tuple(int(i) for i in r if i >= 0) for r in given.pop("rows"))
        return Problems(tuple(map(str, given.pop("kinds"))), rows, **given)


@dataclass(frozen=True, eq=False)
class Kept(Solver):
    """A solver that keeps what it is given and what it answers."""

    seen: list[tuple[Var, ...]] = field(default_factory=list)

    def add(self, b: ProgramBuilder, numbers: Sequence[Var], v: Var, impulses: Var) -> tuple[Var, Var, Var]:
        found = super().add(b, numbers, v, impulses)
        self.seen.append((*numbers, v, impulses, *found))
        return found


class KeptLift(Lift):
    """What is kept of a motion is its solution with bounded lifting."""

    def bounded(self, b: ProgramBuilder, numbers: Sequence[Var], found: Sequence[Var]) -> list[Var]:
        solver = self.stages.solver
        assert isinstance(solver, Kept)
        *before, last = solver.seen
        v, impulses, left, targets = super().bounded(b, numbers, found)
        m, p, j, _, *start = last[:-3]
        solver.seen[len(before) :] = [(m, p, j, targets, *start, v, impulses, left)]
        return [v, impulses, left, targets]


class Recorder:
    """The problems of one world with `Hard` contact, at most one impact in a substep, and no restitution."""

    def __init__(self, world: cs.World):
        self.world, self.setup = world, replace(world.setup, substeps=1)
        contact = self.setup.contact
        if not isinstance(contact, cs.Hard) or contact.bounces(self.setup) or contact.impacts_of(self.setup) > 1:
            raise ValueError(f"problems are kept of Hard() without restitution; the world has {contact}")
        self.stages = Stages(contact, self.setup)
        self.kernel = self._kernel()

    @property
    def problem(self) -> Problem:
        return self.stages.problem

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.problem.blocks

    def _kernel(self) -> Kernel:
        s, setup = self.stages, self.setup
        s.solver = s.striker = kept = Kept(s.problem, s.solver.limit, s.solver.rounds, s.solver.wanted)
        s.lift = KeptLift(s)
        b = ProgramBuilder("problems")
        args, moving = step_inputs(b, setup), setup.nq + setup.nv
        x = b.slice(args[0], 0, moving) if setup.na else args[0]
        T, strikes = b.constant([setup.dt]), bool(s.impacts and s.hits)
        at, tau, misses = until(s, b, args, x, T) if strikes else (x, b.zeros(1), b.zeros(s.hits))
        clock = Clock(at, T, tau, b.zeros(1))
        found = s.prepare(b, args, at, T)
        v, impulses, left, hit = b.slice(at, setup.nq, setup.nv), b.zeros(s.n), b.zeros(1), b.zeros(1)
        if strikes:
            # As Stages.piece does it, but the impact is computed in every state, so that its problem is there to be kept.
            hit = b.trace(s._hit, found.gap, found.rate, found.restitution, b.trace(lambda T, tau: T - tau, T, tau))
            p, after, struck, residual = s._impact(b, found, clock)
            force, drift = s._at(b, "forces", [s.force, s.drift], args, b.concat(b.slice(at, 0, setup.nq), after), T)
            waited = b.trace(lambda p, f, tau: p + tau * f, found.momentum, found.force, tau)
            pairs = (p, waited), (force, found.force), (drift, found.drift), (after, v), (struck, impulses)
            chosen = [b.trace(lambda hit, a, c: ca.if_else(hit, a, c), hit, *pair) for pair in pairs]
            left = b.trace(lambda hit, a: hit * a, hit, residual)
            momentum, force, drift, v, impulses = chosen
            found = found._replace(momentum=momentum, force=force, drift=drift)
        targets, _ = b.trace(s._targets, *found, v, T, tau, hit, clock.count, misses)
        x, *_ = s._motion(b, found, clock, args, targets, v, impulses, left)
        names = ("impact", "motion") if strikes else ("motion",)
        for name, values in zip(names, kept.seen, strict=False):
            for number, value in zip(NUMBERS, values, strict=True):
                b.output(f"{name}_{number}", value)
        b.output("hit", hit)
        b.output("after", x)
        return b.kernel()

    def call(self, states: torch.Tensor, controls: torch.Tensor | None = None) -> dict[str, np.ndarray]:
        """Return the outputs of the kernel for states (b, nx) and controls (b, nu)."""
        if controls is None:
            controls = torch.zeros(len(states), self.world.nu, dtype=states.dtype)
        with torch.no_grad():
            found = self.kernel.apply(self.world._arguments(states, controls, None, None))
        names = [spec.name for spec in self.kernel.signature.outputs]
        return {name: value.numpy() for name, value in zip(names, found, strict=True)}

    def problems(self, states: torch.Tensor, controls: torch.Tensor | None = None) -> Iterator[Problems]:
        """Yield the problems of states, a chunk at a time: those of motions, and those of impacts where something strikes."""
        for k in range(0, len(states), CHUNK):
            yield from self.split(
                self.call(states[k : k + CHUNK], None if controls is None else controls[k : k + CHUNK])
            )

    def split(self, found: dict[str, np.ndarray]) -> Iterator[Problems]:
        """Yield the problems of motions in what `call` returns, then those of impacts where something strikes."""
        yield self._problems(found, "motion")
        struck = found["hit"][:, 0] > 0
        if struck.any():
            yield self._problems({name: value[struck] for name, value in found.items()}, "impact")

    def _problems(self, found: dict[str, np.ndarray], name: str) -> Problems:
        m, p, j, t, bounds, *rest, residual = (found[f"{name}_{number}"] for number in NUMBERS)
        count, s = len(m), self.problem
        M = np.zeros((count, s.nv, s.nv))
        i, k = (np.array(x, int) for x in s.M.get_triplet())
        M[:, i, k] = M[:, k, i] = m
        J = np.zeros((count, s.n, s.nv))
        i, k = (np.array(x, int) for x in s.J.get_triplet())
        J[:, i, k] = j
        kinds, rows = tuple(b.kind for b in s.blocks), tuple(b.rows for b in s.blocks)
        return Problems(kinds, rows, M, J, p, t, bounds, *rest, residual[:, 0])  # pyright: ignore[reportCallIssue]
