"""Scans: a body applied n times to a carried state, the loop of which roll-outs and iterative solvers are made.

    carry[t+1], y[t] = body(carry[t], x[t], shared)        t = 0 .. n-1, or n-1 .. 0 if reversed

- Forward mode is a scan with twice the carries: states and their tangents.
- The adjoint is a scan in the other direction over the states that the first one went through. Each of its steps runs the
  body's own backward pass, which computes the body again; so nothing but the carried states is kept. Its carries are the gradients
  of the carries, and sums of the gradients of what all steps share. A scan inside of the body is not run once more if its states
  are results of the body that the backward pass is given.
- The same loop with a condition (`until`) is a while loop. Its lanes may stop at different times, so it also returns how many steps
  each took, and its adjoint is a scan with a count per lane (`counted`). Finished lanes are frozen: their bits do not depend on the
  other lanes of the vector.
- Restricted to some outputs, a scan keeps the carries that those depend on, through any number of steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from costate.core.fork import cached_property
from costate.kernel.ir.derive import jvp, vjp
from costate.kernel.ir.program import Array, Builder, Op, Program, Var
from costate.kernel.ir.prune import prune
from costate.kernel.ir.vector_ops import Parts, Slice, add, zeros
from costate.kernel.ops.finite import Finite

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Scan(Op):
    """inputs: carries, sequences (steps * n, row by row), shared, [count]; outputs: final carries, stacked results
    (steps * m), states ((steps + 1) * n) of the carries to keep, [count]."""

    body: Program
    """Program (carries, one row of each sequence, shared) -> (carries, one row of each result)."""
    steps: int
    n_carry: int
    n_sequences: int
    keep: tuple[bool, ...]
    """Flag of each carry: true if the states it goes through are an output. Row t is the state at time t."""
    reverse: bool = False
    counted: bool = False
    """The last input says how many steps each lane takes."""
    until: Program | None = None
    """Program (carries, shared) -> 1 while the lane goes on. The last output then is the number of steps taken."""
    remember: tuple[int, ...] = ()
    """Results that a backward pass keeps from its run forward, instead of computing them again from each state."""

    @property
    def masked(self) -> bool:
        """True if lanes may take different numbers of steps."""
        return self.counted or self.until is not None

    @property
    def n_shared(self) -> int:
        """Number of inputs that all steps share."""
        return len(self.body.inputs) - self.n_carry - self.n_sequences

    @cached_property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        sizes = self.body.in_sizes
        rows = range(self.n_carry, self.n_carry + self.n_sequences)
        scaled = tuple(n * self.steps if k in rows else n for k, n in enumerate(sizes))
        return scaled + (1,) * self.counted

    @cached_property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        sizes = self.body.out_sizes
        results = tuple(n * self.steps for n in sizes[self.n_carry :])
        states = tuple((self.steps + 1) * n for n, k in zip(sizes, self.keep, strict=False) if k)
        return sizes[: self.n_carry] + results + states + (1,) * (self.until is not None)

    @property
    def repeats(self) -> int:
        return self.steps

    def describe(self) -> tuple[Any, ...]:
        until = self.until.key if self.until else ""
        return (
            self.body.key,
            self.steps,
            self.n_carry,
            self.n_sequences,
            self.keep,
            self.reverse,
            self.counted,
            until,
            self.remember,
        )

    def bodies(self) -> list[Program]:
        return [self.body, self.until] if self.until else [self.body]

    def check(self) -> None:
        """Raise if the body does not return the carries it takes."""
        given, made = self.body.in_sizes[: self.n_carry], self.body.out_sizes[: self.n_carry]
        if given != made:
            raise ValueError(
                f"the body of a scan must return the carries it takes, first: carries have sizes {given}, it returns {made}"
            )

    def split_in(self, items: Sequence[T]) -> tuple[list[T], list[T], list[T]]:
        """Split the inputs into (carries, sequences, shared)."""
        a, b, c = self.n_carry, self.n_carry + self.n_sequences, len(self.body.inputs)
        return list(items[:a]), list(items[a:b]), list(items[b:c])

    def split_out(self, items: Sequence[T]) -> tuple[list[T], list[T], list[T]]:
        """Split the outputs into (final carries, results, states of the kept carries)."""
        a, b = self.n_carry, len(self.body.outputs)
        return list(items[:a]), list(items[a:b]), list(items[b : b + sum(self.keep)])

    @cached_property
    def inner_states(self) -> list[int]:
        """Indices of the results that are states of scans inside of the body."""
        inner: set[Var] = set()
        for s in self.body.stages:
            if isinstance(s.op, Scan) and not s.op.masked:
                inner.update(s.op.split_out(s.outputs)[2])
        return [k for k, v in enumerate(self.body.outputs[self.n_carry :]) if v in inner]

    def times(self, steps: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield (t, row the carry is written to) in the order of execution."""
        n = self.steps if steps is None else steps
        for k in range(n):
            t = n - 1 - k if self.reverse else k
            yield t, t if self.reverse else t + 1

    # --- meaning --------------------------------------------------------------------------------------------------

    def evaluate(self, *inputs: Array) -> list[Array]:
        carries, sequences, shared = self.split_in(inputs)
        batch = max((x.shape[1] for x in inputs), default=1)
        limit = np.asarray(inputs[-1][0]) if self.counted else np.full(batch, float(self.steps))
        taken = np.zeros(batch)
        n_results = len(self.body.outputs) - self.n_carry
        rows = [np.zeros((self.steps, n, batch)) for n in self.body.out_sizes[self.n_carry :]]
        states = [np.zeros((self.steps + 1, c.shape[0], batch)) for c in carries]
        carries = [np.broadcast_to(c, (c.shape[0], batch)).copy() for c in carries]
        longest = int(limit.max()) if batch else 0
        for c, s in zip(carries, states, strict=True):
            s[longest if self.reverse else 0] = c
        going = np.ones(batch, bool)
        for t, after in self.times(longest):
            going = going & (t < limit) if not self.counted else t < limit
            if self.until:
                going = going & (self.until.evaluate(*carries, *shared)[0][0] == 1)
                if not going.any():
                    break
            xs = [x[t * n : (t + 1) * n] for x, n in zip(sequences, self.row_sizes, strict=True)]
            outs = self.body.evaluate(*carries, *xs, *shared)
            carries = [np.where(going, new, old) for new, old in zip(outs, carries, strict=False)]
            taken += going
            for c, s in zip(carries, states, strict=True):
                s[after] = c
            for k in range(n_results):
                rows[k][t] = np.where(going, outs[self.n_carry + k], 0.0)
        kept = [s.reshape(-1, batch) for s, k in zip(states, self.keep, strict=True) if k]
        stacked = [r.reshape(-1, batch) for r in rows]
        return [*carries, *stacked, *kept, *([taken[None]] if self.until else [])]

    @property
    def row_sizes(self) -> tuple[int, ...]:
        """Sizes of the rows of the sequences."""
        return self.body.in_sizes[self.n_carry : self.n_carry + self.n_sequences]

    # --- derivatives ----------------------------------------------------------------------------------------------

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        count = list(ins[len(self.body.inputs) :])
        moving = [k for k in range(len(self.body.inputs)) if k < self.n_carry or tans[k] is not None]
        dots = [tans[k] or zeros(b, ins[k].size) for k in moving]
        both = jvp(self.body, moving, primal=True)
        order_in = _interleave(self.split_in(both.inputs), both.inputs[len(self.body.inputs) :], moving, self)
        n_out = len(self.body.outputs)
        outs, d_outs = both.outputs[:n_out], both.outputs[n_out:]
        c = self.n_carry
        body = replace(both, inputs=order_in, outputs=(*outs[:c], *d_outs[:c], *outs[c:], *d_outs[c:]))
        moving_sequences = sum(c <= k < c + self.n_sequences for k in moving)
        op = replace(
            self,
            body=body,
            n_carry=2 * c,
            n_sequences=self.n_sequences + moving_sequences,
            keep=self.keep + self.keep,
            remember=(),
            until=self._until_with(body) if self.until else None,
        )
        args = _interleave(self.split_in(ins), dots, moving, self)
        result = b.stage(op, *args, *count)
        finals, results, states = op.split_out(result)
        r, s = len(results) // 2, len(states) // 2
        taken = result[-1:] if self.until else []
        primal = [*finals[:c], *results[:r], *states[:s], *taken]
        return primal, [*finals[c:], *results[r:], *states[s:], *([None] * len(taken))]

    def _until_with(self, body: Program) -> Program:
        """Return the condition, told to ignore tangents."""
        assert self.until is not None
        b = Builder()
        carries = [b.input(n) for n in body.in_sizes[: 2 * self.n_carry]]
        shared = [b.input(n) for n in body.in_sizes[2 * self.n_carry :]]  # a while has no sequences
        primal = shared[: self.n_shared]
        return b.finish(*b.inline(self.until, *carries[: self.n_carry], *primal))

    def replay(self, b: Builder, ins: Sequence[Var], given: Sequence[Var | None]) -> tuple[list[Var], Any]:
        op = self.with_states()
        result = b.stage(op, *ins)
        finals, results, states = op.split_out(result)
        taken = result[-1:] if self.until else []
        _, rows, known = self.split_out(given)
        kept_carries = [k for k in range(self.n_carry) if self.keep[k]]
        for k, g in zip(kept_carries, known, strict=True):
            if g is not None:
                states[k] = g
                n = self.body.in_sizes[k]
                if not self.masked:
                    finals[k] = b.stage(Slice(g.size, 0 if self.reverse else self.steps * n, n), g)[0]
        outs = [*finals, *results, *(states[k] for k in kept_carries), *taken]
        inner = {k: g for k in self.inner_states if (g := rows[k]) is not None}
        inner |= {k: rows[k] or results[k] for k in self.remember if not self.masked}
        return [g or o for g, o in zip(given, outs, strict=True)], (states, taken, inner)

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        states, taken, inner = kept
        c, n_in = self.n_carry, len(self.body.inputs)
        _, sequences, shared = self.split_in(ins)
        final_bars, result_bars, state_bars = self.split_out(seeds)
        kept_carries = [k for k in range(c) if self.keep[k]]
        state_bar_of = dict(zip(kept_carries, state_bars, strict=True))
        seeded = [k for k, s in enumerate(result_bars) if s is not None]
        targets = list(range(c)) + [k for k in range(c, n_in) if wrt[k]]
        back = vjp(self.body, targets, [*range(c), *(c + k for k in seeded)], [c + k for k in inner])
        body, n_acc = self._backward_body(
            back, targets, list(inner), seeded, [k for k in kept_carries if state_bar_of[k]]
        )

        rows = [self._cut(b, s)[0] for s in states]
        rows += [*sequences, *inner.values(), *(s for s in result_bars if s is not None)]
        cuts = {k: self._cut(b, s) for k, s in state_bar_of.items() if s is not None}
        rows += [row for row, _ in cuts.values()]
        start = [self._last_bar(b, k, final_bars[k], cuts[k][1] if k in cuts else None) for k in range(c)]
        sums = [zeros(b, self.body.in_sizes[k]) for k in targets[len(targets) - n_acc :]] if n_acc else []
        op = Scan(
            body,
            self.steps,
            c + n_acc,
            len(rows),
            (False,) * (c + n_acc),
            reverse=not self.reverse,
            counted=self.masked,
        )
        count = taken or list(ins[n_in:])
        result = b.stage(op, *start, *sums, *rows, *shared, *count)
        grads: list[Var | None] = [None] * len(ins)
        moved = [k for k in targets if c <= k < c + self.n_sequences]
        for k, v in zip([*range(c), *targets[len(targets) - n_acc :], *moved], result, strict=True):
            grads[k] = v
        return grads

    def _backward_body(
        self, back: Program, targets: list[int], inner: list[int], seeded: list[int], barred: list[int]
    ) -> tuple[Program, int]:
        """Build the adjoint's body: (bars of carries, sums), rows (states, sequences, inner states, seeds, state seeds), shared."""
        c, s = self.n_carry, self.n_sequences
        b = Builder()
        bars = [b.input(n) for n in self.body.out_sizes[:c]]
        n_acc = sum(k >= c + s for k in targets)
        sums = [b.input(self.body.in_sizes[k]) for k in targets if k >= c + s]
        states = [b.input(n) for n in self.body.in_sizes[:c]]
        sequences = [b.input(n) for n in self.body.in_sizes[c : c + s]]
        inside = [b.input(self.body.out_sizes[c + k]) for k in inner]
        seeds = [b.input(self.body.out_sizes[c + k]) for k in seeded]
        state_bars = {k: b.input(self.body.in_sizes[k]) for k in barred}
        shared = [b.input(n) for n in self.body.in_sizes[c + s :]]
        grads = b.inline(back, *states, *sequences, *shared, *inside, *bars, *seeds)
        new_bars = [add(b, g, state_bars[k]) if k in state_bars else g for k, g in enumerate(grads[:c])]
        row_grads = grads[c : len(grads) - n_acc]
        new_sums = [add(b, a, g) for a, g in zip(sums, grads[len(grads) - n_acc :] if n_acc else [], strict=True)]
        return b.finish(*new_bars, *new_sums, *row_grads), n_acc

    def state_rows(self, b: Builder, states: Var) -> Var:
        """Return those of the steps + 1 rows of states that the steps read from."""
        return self._cut(b, states)[0]

    def _cut(self, b: Builder, states: Var) -> tuple[Var, Var]:
        """Cut the steps + 1 rows of states into those that the steps read from, and the last one."""
        n = states.size // (self.steps + 1)
        parts = b.stage(Parts((n, self.steps * n) if self.reverse else (self.steps * n, n)), states)
        return (parts[1], parts[0]) if self.reverse else (parts[0], parts[1])

    def _last_bar(self, b: Builder, k: int, final: Var | None, row: Var | None) -> Var:
        """Seed of a carry after the last step: of the final carry, plus the last row of its states' seed."""
        if row is None:
            return final or zeros(b, self.body.in_sizes[k])
        return add(b, final, row) if final else row

    def with_states(self) -> Scan:
        """Return the scan whose states are all outputs."""
        return replace(self, keep=(True,) * self.n_carry)

    def restrict(self, used: Sequence[bool]) -> tuple[Op, list[int], list[int]]:
        c, n_out = self.n_carry, len(self.body.outputs)
        finals, results, kept = self.split_out(used)
        kept_of = dict(zip([k for k in range(c) if self.keep[k]], kept, strict=True))
        live = [finals[k] or kept_of.get(k, False) for k in range(c)]
        if self.until:
            reads = self.until.depends_on([True])
            live = [a or r for a, r in zip(live, reads, strict=False)]
        while True:  # a carry lives if a living one depends on it
            reads = self.body.depends_on(live + results)
            grown = [a or r for a, r in zip(live, reads, strict=False)]
            if grown == live:
                break
            live = grown
        if self.until:
            shared_reads = self.until.depends_on([True])[c:]
            shift = c + self.n_sequences
            reads = [r or (k >= shift and shared_reads[k - shift]) for k, r in enumerate(reads)]
        ins = [k for k in range(len(reads)) if (live[k] if k < c else reads[k])]
        return self._restricted(live, results, kept_of, ins, n_out)

    def _restricted(self, live, results, kept_of, ins, n_out) -> tuple[Op, list[int], list[int]]:
        c = self.n_carry
        body_outs = [k for k in range(c) if live[k]] + [c + k for k, r in enumerate(results) if r]
        body = prune(Program(self.body.inputs, self.body.stages, tuple(self.body.outputs[k] for k in body_outs)))
        body = replace(body, inputs=tuple(body.inputs[k] for k in ins))
        until = self.until
        if until:
            names = [k for k in range(c) if live[k]] + [k - self.n_sequences for k in ins if k >= c + self.n_sequences]
            until = replace(prune(until), inputs=tuple(until.inputs[k] for k in names))
        op = Scan(
            body,
            self.steps,
            sum(live),
            sum(c <= k < c + self.n_sequences for k in ins),
            tuple(kept_of.get(k, False) for k in range(c) if live[k]),
            self.reverse,
            self.counted,
            until,
            tuple(sum(results[:k]) for k in self.remember if results[k]),
        )
        n_in = len(self.body.inputs)
        state_at = {k: n_out + i for i, k in enumerate(kept_of)}
        outs = body_outs + [state_at[k] for k, u in kept_of.items() if u and live[k]]
        if until:
            outs.append(len(self.out_sizes) - 1)
        return op, ins + ([n_in] if self.counted else []), outs

    def with_finite_flag(self) -> Scan:
        """Return the scan with one more carry, after the others, that stays 1 while all carries and results are finite."""
        b = Builder()
        carries, sequences, shared = self.split_in(self.body.in_sizes)
        ins = [b.input(n) for n in carries]
        flag = b.input(1)
        ins += [b.input(n) for n in (*sequences, *shared)]
        outs = b.inline(self.body, *ins)
        flag = b.stage(Finite(self.body.out_sizes), flag, *outs)[0]
        body = b.finish(*outs[: self.n_carry], flag, *outs[self.n_carry :])
        until = None
        if self.until:
            u = Builder()
            args = [u.input(n) for n in carries]
            u.input(1)
            until = u.finish(*u.inline(self.until, *args, *(u.input(n) for n in shared)))
        return replace(self, body=body, n_carry=self.n_carry + 1, keep=(*self.keep, False), until=until)

    # --- code -----------------------------------------------------------------------------------------------------

    def reads_rows(self, k: int, row_size: int) -> bool:
        sequences = range(self.n_carry, self.n_carry + self.n_sequences)
        return k in sequences and self.body.in_sizes[k] == row_size

    def writes_rows(self, k: int, row_size: int) -> bool:
        if self.masked or k < self.n_carry:
            return False
        sizes = [*self.body.out_sizes, *(n for n, kept in zip(self.body.in_sizes, self.keep, strict=False) if kept)]
        return sizes[k] == row_size


def _interleave(parts: tuple[list, list, list], dots: Sequence, moving: list[int], scan: Scan) -> tuple:
    """Sort into carries, their tangents, sequences, their tangents, shared, their tangents."""
    c, s = scan.n_carry, scan.n_carry + scan.n_sequences
    of = dict(zip(moving, dots, strict=True))
    groups = (range(c), range(c, s), range(s, len(scan.body.inputs)))
    out: list = []
    for part, group in zip(parts, groups, strict=True):
        out += [*part, *(of[k] for k in group if k in of)]
    return tuple(out)
