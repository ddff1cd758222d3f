"""Stages with a given derivative, for instance the implicit derivative of a solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from costate.kernel.ir.derive import jvp, vjp
from costate.kernel.ir.program import Array, Builder, Op, Program, Var
from costate.kernel.ir.vector_ops import is_zero, zeros


@dataclass(frozen=True, eq=False)
class Custom(Op):
    """Runs `body`; its derivatives are the programs given. One that is not given is that of the body."""

    body: Program
    tangent: Program | None
    """Program (inputs, outputs, a tangent per input) -> tangents of the outputs."""
    adjoint: Program | None
    """Program (inputs, outputs, a seed per output) -> gradients of the inputs."""

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.body.in_sizes

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.body.out_sizes

    def describe(self) -> tuple[Any, ...]:
        keys = [p.key if p else "" for p in (self.tangent, self.adjoint)]
        return (self.body.key, *keys)

    def bodies(self) -> list[Program]:
        return [p for p in (self.body, self.tangent, self.adjoint) if p]

    def check(self) -> None:
        """Raise if a derivative does not have the sizes it must have."""
        ins, outs = self.in_sizes, self.out_sizes
        for name, program, expected, returned in (
            ("tangent", self.tangent, ins + outs + ins, outs),
            ("adjoint", self.adjoint, ins + outs + outs, ins),
        ):
            if program and (program.in_sizes != expected or program.out_sizes != returned):
                raise ValueError(
                    f"the {name} of a custom stage must map sizes {expected} to {returned}, but maps {program.in_sizes} to "
                    f"{program.out_sizes}"
                )

    def evaluate(self, *inputs: Array) -> list[Array]:
        return self.body.evaluate(*inputs)

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        outs = b.stage(self, *ins)
        if self.tangent is None:
            moving = [k for k, t in enumerate(tans) if t is not None]
            return outs, list(b.inline(jvp(self.body, moving), *ins, *(t for t in tans if t is not None)))
        dots = [t or zeros(b, v.size) for t, v in zip(tans, ins, strict=True)]
        return outs, list(b.inline(self.tangent, *ins, *outs, *dots))

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        bars = [s or zeros(b, n) for s, n in zip(seeds, self.out_sizes, strict=True)]
        if self.adjoint is None:
            every = range(len(self.in_sizes)), range(len(self.out_sizes))
            return list(b.inline(vjp(self.body, *every), *ins, *bars))
        grads = b.inline(self.adjoint, *ins, *outs, *bars)
        # What is not differentiated by is not added to either.
        none = {v for s in self.adjoint.stages if is_zero(s.op) for v in s.outputs}
        return [None if v in none else g for v, g in zip(self.adjoint.outputs, grads, strict=True)]
