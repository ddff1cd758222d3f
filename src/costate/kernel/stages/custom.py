"""Stages with a given derivative, for instance the implicit derivative of a solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from costate.kernel.program import Array, Builder, Op, Program, Var
from costate.kernel.stages.straight import zeros

if TYPE_CHECKING:
    from costate.kernel.emit import Emitter, Place


@dataclass(frozen=True, eq=False)
class Custom(Op):
    """Runs `body`; its derivatives are the programs given, not those of the body."""

    body: Program
    tangent: Program | None
    """(inputs, outputs, a tangent per input) -> tangents of the outputs."""
    adjoint: Program | None
    """(inputs, outputs, a seed per output) -> gradients of the inputs."""

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

    def evaluate(self, *inputs: Array) -> list[Array]:
        return self.body.evaluate(*inputs)

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        if self.tangent is None:
            raise ValueError(
                "this custom stage was given no tangent program: pass tangent= to differentiate it forward"
            )
        outs = b.stage(self, *ins)
        dots = [t or zeros(b, v.size) for t, v in zip(tans, ins, strict=True)]
        return outs, list(b.inline(self.tangent, *ins, *outs, *dots))

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        if self.adjoint is None:
            raise ValueError(
                "this custom stage was given no adjoint program: pass adjoint= to differentiate it backward"
            )
        bars = [s or zeros(b, n) for s, n in zip(seeds, self.out_sizes, strict=True)]
        return list(b.inline(self.adjoint, *ins, *outs, *bars))

    def emit(self, e: Emitter, ins: Sequence[Place], outs: Sequence[Place]) -> None:
        e.call(e.unit.function(self.body), [e.pointer(p) for p in ins], [e.pointer(p) for p in outs])
