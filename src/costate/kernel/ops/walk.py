"""Walks: instances that change a shared state one after the other, in place (sweeps over contacts, over edges of a mesh).

    rounds times, for every instance i in order whose flag is not zero:
        local, result, row = body(state[states[i]], read[gather[i]], rows[t, i])
        state[states[i]] = local;   sum[scatter[i]] += result

An instance has a few elements of each state as its local state (its row of an index table), may read elements of other vectors,
and returns its local state changed. Later instances see the change, which tells a walk from a map. Instances that no lane takes
cost one look at their flag, once for all rounds.

The adjoint is a walk in the other direction. At every visit it needs the local state as it was then, so the forward walk keeps it:
rounds x instances x local state, of which only the visited part is ever touched.
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
from costate.kernel.ir.vector_ops import add, zeros
from costate.kernel.ops.index_tables import check_table, table_parts

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Walk(Op):
    """inputs: flags (count), states, reads, rows (rounds * count * n); outputs: final states, sums, rows, kept local states
    (rounds * count * n). Rows of instances that are left out are zero, or not written where no lane takes them: they may only be
    read under the same flags."""

    body: Program
    """Program (local states, reads, rows) -> (local states, results that are summed, rows)."""
    rounds: int
    count: int
    states: tuple[np.ndarray, ...]
    """Table of each state (count, size of the local state), without an element twice in a row."""
    gather: tuple[np.ndarray, ...]
    """Table of each read (count, size of what the body reads)."""
    scatter: tuple[np.ndarray, ...]
    """Table of each sum (count, size of what the body adds)."""
    state_sizes: tuple[int, ...]
    read_sizes: tuple[int, ...]
    sum_sizes: tuple[int, ...]
    keep: tuple[bool, ...]
    """Flag of each state: true if the local states before each visit are an output."""
    reverse: bool = False

    @cached_property
    def row_sizes(self) -> tuple[int, ...]:
        """Sizes of the rows that one visit reads."""
        return self.body.in_sizes[len(self.states) + len(self.gather) :]

    @cached_property
    def row_out_sizes(self) -> tuple[int, ...]:
        """Sizes of the rows that one visit writes."""
        return self.body.out_sizes[len(self.states) + len(self.scatter) :]

    @cached_property
    def kept(self) -> list[int]:
        """Indices of the states that are kept."""
        return [k for k, kept in enumerate(self.keep) if kept]

    @cached_property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        visits = self.rounds * self.count
        return (self.count, *self.state_sizes, *self.read_sizes, *(visits * n for n in self.row_sizes))

    @cached_property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        visits = self.rounds * self.count
        rows = [*self.row_out_sizes, *(self.body.in_sizes[k] for k in self.kept)]
        return (*self.state_sizes, *self.sum_sizes, *(visits * n for n in rows))

    @property
    def repeats(self) -> int:
        return self.rounds * self.count

    def describe(self) -> tuple[Any, ...]:
        data = table_parts(*self.states, *self.gather, *self.scatter)
        groups = len(self.states), len(self.gather), len(self.scatter)
        return (self.body.key, self.rounds, self.count, groups, self.keep, self.reverse, *data)

    def bodies(self) -> list[Program]:
        return [self.body]

    def split_in(self, items: Sequence[T]) -> tuple[list[T], list[T], list[T]]:
        """Split the inputs after the flags into (states, reads, rows)."""
        a = len(self.states)
        b = a + len(self.gather)
        return list(items[:a]), list(items[a:b]), list(items[b:])

    def split_out(self, items: Sequence[T]) -> tuple[list[T], list[T], list[T], list[T]]:
        """Split the outputs into (final states, sums, rows, kept local states)."""
        a = len(self.states)
        b = a + len(self.scatter)
        c = b + len(self.row_out_sizes)
        return list(items[:a]), list(items[a:b]), list(items[b:c]), list(items[c:])

    def visits(self) -> Iterator[tuple[int, int]]:
        """Yield (round, instance) in the order of execution."""
        order = [(t, i) for t in range(self.rounds) for i in range(self.count)]
        yield from reversed(order) if self.reverse else order

    def check(self) -> None:
        """Raise if the body or a table does not fit."""
        n, r = len(self.states), len(self.gather)
        ins, outs = self.body.in_sizes, self.body.out_sizes
        if len(ins) != n + r or outs[:n] != ins[:n]:
            raise ValueError(
                f"the body of a walk takes {n} local states and {r} reads and returns the states first: it maps {ins} to {outs}"
            )
        tables = (*self.states, *self.gather, *self.scatter)
        widths = (*ins, *outs[n : n + len(self.scatter)])
        sizes = (*self.state_sizes, *self.read_sizes, *self.sum_sizes)
        for table, width, size in zip(tables, widths, sizes, strict=True):
            check_table(table, (self.count, width), size)
        if any(len(set(row)) < len(row) for table in self.states for row in table.tolist()):
            raise ValueError("an instance of a walk must not have an element of a state twice")

    # --- meaning --------------------------------------------------------------------------------------------------

    def evaluate(self, *inputs: Array) -> list[Array]:
        batch = max(x.shape[1] for x in inputs)
        flags, *rest = (np.broadcast_to(x, (x.shape[0], batch)) for x in inputs)
        states, reads, rows = self.split_in(rest)
        states = [s.copy() for s in states]
        _, sums, rows_out, kept = self.split_out([np.zeros((n, batch)) for n in self.out_sizes])
        for t, i in self.visits():
            if not flags[i].any():
                continue
            local = [s[table[i]] for s, table in zip(states, self.states, strict=True)]
            row = [_row(x, n, t * self.count + i) for x, n in zip(rows, self.row_sizes, strict=True)]
            for k, x in zip(self.kept, kept, strict=True):
                _row(x, len(local[k]), t * self.count + i)[:] = local[k]
            args = [x[table[i]] for x, table in zip(reads, self.gather, strict=True)]
            new, results, made, _ = self.split_out(self.body.evaluate(*local, *args, *row))
            for s, table, x, old in zip(states, self.states, new, local, strict=True):
                s[table[i]] = np.where(np.isnan(flags[i]), np.nan, np.where(flags[i] != 0, x, old))
            for s, table, x in zip(sums, self.scatter, results, strict=True):
                np.add.at(s, table[i], np.where(flags[i] != 0, x, 0.0))
            for x, n, y in zip(rows_out, self.row_out_sizes, made, strict=True):
                _row(x, n, t * self.count + i)[:] = np.where(flags[i] != 0, y, 0.0)
        return [*states, *sums, *rows_out, *kept]

    # --- derivatives ----------------------------------------------------------------------------------------------

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        flags, tangents = ins[0], tans[1:]
        n = len(self.states)
        moving = [k for k in range(len(self.body.inputs)) if k < n or tangents[k] is not None]
        dots = {k: tangents[k] or zeros(b, ins[k + 1].size) for k in moving}
        both = jvp(self.body, moving, primal=True)
        body_dots = dict(zip(moving, both.inputs[len(self.body.inputs) :], strict=True))
        n_out = len(self.body.outputs)
        outs = zip(self.split_out(both.outputs[:n_out])[:3], self.split_out(both.outputs[n_out:])[:3], strict=True)
        body = Program(
            tuple(self._doubled(both.inputs[: len(self.body.inputs)], body_dots)),
            both.stages,
            tuple(v for primal, tangent in outs for v in (*primal, *tangent)),
        )
        reads = [k - n for k in moving if n <= k < n + len(self.gather)]
        op = replace(
            self,
            body=body,
            states=self.states * 2,
            gather=(*self.gather, *(self.gather[k] for k in reads)),
            scatter=self.scatter * 2,
            state_sizes=self.state_sizes * 2,
            read_sizes=(*self.read_sizes, *(self.read_sizes[k] for k in reads)),
            sum_sizes=self.sum_sizes * 2,
            keep=self.keep * 2,
        )
        found = op.split_out(b.stage(op, flags, *self._doubled(ins[1:], dots)))
        halves = [(part[: len(part) // 2], part[len(part) // 2 :]) for part in found]
        return [v for x, _ in halves for v in x], [v for _, x in halves for v in x]

    def _doubled(self, items: Sequence[T], dots: dict[int, T]) -> list[T]:
        """Sort into states, their tangents, reads, their tangents, rows, their tangents."""
        places = self.split_in(range(len(items)))
        return [x for part in places for x in (*(items[k] for k in part), *(dots[k] for k in part if k in dots))]

    def replay(self, b: Builder, ins: Sequence[Var], given: Sequence[Var | None]) -> tuple[list[Var], Any]:
        op = replace(self, keep=(True,) * len(self.states))
        finals, sums, rows, kept = op.split_out(b.stage(op, *ins))
        outs = [*finals, *sums, *rows, *(kept[k] for k in self.kept)]
        return [g or o for g, o in zip(given, outs, strict=True)], kept

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        final_bars, sum_bars, row_bars, kept_bars = self.split_out(seeds)
        n, g, s = len(self.states), len(self.gather), len(self.scatter)
        summed = [k for k, x in enumerate(sum_bars) if x is not None]
        rowed = [k for k, x in enumerate(row_bars) if x is not None]
        barred = {k: x for k, x in zip(self.kept, kept_bars, strict=True) if x is not None}
        _, reads, rows = self.split_in(ins[1:])
        seeded = [True] * n + [x is not None for x in (*sum_bars, *row_bars)]
        needed = self.body.depends_on(seeded)
        targets = [k for k in range(len(self.body.inputs)) if k < n or (wrt[k + 1] and needed[k])]
        back = vjp(self.body, targets, [*range(n), *(n + k for k in summed), *(n + s + k for k in rowed)])
        moved = [k - n for k in targets if n <= k < n + g]
        op = Walk(
            self._backward_body(back, targets, summed, rowed, list(barred)),
            self.rounds,
            self.count,
            self.states,
            (*self.gather, *(self.scatter[k] for k in summed)),
            tuple(self.gather[k] for k in moved),
            self.state_sizes,
            (*self.read_sizes, *(self.sum_sizes[k] for k in summed)),
            tuple(self.read_sizes[k] for k in moved),
            (False,) * n,
            not self.reverse,
        )
        start = [x or zeros(b, size) for x, size in zip(final_bars, self.state_sizes, strict=True)]
        summed_bars, rowed_bars = ([x for x in bars if x is not None] for bars in (sum_bars, row_bars))
        found = b.stage(op, ins[0], *start, *reads, *summed_bars, *kept, *rows, *rowed_bars, *barred.values())
        grads: list[Var | None] = [None] * len(ins)
        for k, v in zip(targets, found, strict=True):
            grads[k + 1] = v
        return grads

    def _backward_body(self, back: Program, targets: list[int], summed, rowed, barred: list[int]) -> Program:
        """Build (bars of local states; reads, seeds of sums; local states, rows, seeds of rows and of kept states) -> gradients."""
        b = Builder()
        n = len(self.states)
        local, reads, rows = self.split_in(self.body.in_sizes)
        _, results, made, _ = self.split_out(self.body.out_sizes)
        bars = [b.input(m) for m in local]
        read = [b.input(m) for m in reads]
        sum_bars = [b.input(results[k]) for k in summed]
        state = [b.input(m) for m in local]
        row = [b.input(m) for m in rows]
        row_bars = [b.input(made[k]) for k in rowed]
        kept_bars = {k: b.input(local[k]) for k in barred}
        grads = b.inline(back, *state, *read, *row, *bars, *sum_bars, *row_bars)
        first = [add(b, x, kept_bars[k]) if k in kept_bars else x for k, x in enumerate(grads[:n])]
        return b.finish(*first, *grads[n:])

    def restrict(self, used: Sequence[bool]) -> tuple[Op, list[int], list[int]]:
        n, g = len(self.states), len(self.gather)
        finals, sums, rows, kept = self.split_out(used)
        kept_of = dict(zip(self.kept, kept, strict=True))
        live = [f or kept_of.get(k, False) for k, f in enumerate(finals)]
        while True:  # a state lives if a living one depends on it
            needed = self.body.depends_on([*live, *sums, *rows])
            grown = [a or r for a, r in zip(live, needed, strict=False)]
            if grown == live:
                break
            live = grown
        chosen = [*live, *sums, *rows]
        ins = [k for k, r in enumerate(needed) if (live[k] if k < n else r)]
        body = prune(replace(self.body, outputs=tuple(v for v, c in zip(self.body.outputs, chosen, strict=True) if c)))
        states, reads = [k for k in ins if k < n], [k - n for k in ins if n <= k < n + g]
        summed = [k for k, x in enumerate(sums) if x]
        op = replace(
            self,
            body=replace(body, inputs=tuple(body.inputs[k] for k in ins)),
            states=tuple(self.states[k] for k in states),
            gather=tuple(self.gather[k] for k in reads),
            scatter=tuple(self.scatter[k] for k in summed),
            state_sizes=tuple(self.state_sizes[k] for k in states),
            read_sizes=tuple(self.read_sizes[k] for k in reads),
            sum_sizes=tuple(self.sum_sizes[k] for k in summed),
            keep=tuple(kept_of.get(k, False) for k in states),
        )
        made = [k for k, c in enumerate(chosen) if c]
        made += [len(chosen) + i for i, x in enumerate(kept) if x]
        return op, [0, *(k + 1 for k in ins)], made


def _row(x: Array, n: int, visit: int) -> Array:
    return x[visit * n : (visit + 1) * n]
