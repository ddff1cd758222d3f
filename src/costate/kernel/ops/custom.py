"""Stages with a given derivative, for instance the implicit derivative of a solve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from costate.core.fork import COMPILING
from costate.kernel.ir.derive import jvp, vjp
from costate.kernel.ir.program import Array, Builder, Op, Program, Var
from costate.kernel.ir.vector_ops import is_zero, zeros


@dataclass(frozen=True, eq=False)
class Custom(Op):
    """Runs `body`; its derivatives are the programs given. One that is not given is that of the body.

    They are asked for when they are needed: code that is not differentiated does not wait for them.
    """

    body: Program
    given_tangent: Program | Callable[[], Program] | None
    given_adjoint: Program | Callable[[], Program] | None
    _made: dict[str, Program | None] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: functions that make derivatives are not, but what they make."""
        return {"body": self.body, "given_tangent": self.tangent, "given_adjoint": self.adjoint, "_made": {}}

    @property
    def tangent(self) -> Program | None:
        """Program (inputs, outputs, a tangent per input) -> tangents of the outputs."""
        return self._derivative("tangent", self.given_tangent, self.in_sizes, self.out_sizes)

    @property
    def adjoint(self) -> Program | None:
        """Program (inputs, outputs, a seed per output) -> gradients of the inputs."""
        return self._derivative("adjoint", self.given_adjoint, self.out_sizes, self.in_sizes)

    def _derivative(
        self, name: str, given: Program | Callable[[], Program] | None, more: tuple[int, ...], returned: tuple[int, ...]
    ) -> Program | None:
        """Return a derivative, made now if it is not yet; raise if it does not have the sizes it must have."""
        with COMPILING:
            if name not in self._made:
                program = given() if callable(given) else given
                expected = self.in_sizes + self.out_sizes + more
                if program and (program.in_sizes != expected or program.out_sizes != returned):
                    raise ValueError(
                        f"the {name} of a custom stage must map sizes {expected} to {returned}, but maps "
                        f"{program.in_sizes} to {program.out_sizes}"
                    )
                self._made[name] = program
            return self._made[name]

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.body.in_sizes

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.body.out_sizes

    def describe(self) -> tuple[Any, ...]:
        return (self.body.key,)

    def bodies(self) -> list[Program]:
        return [self.body]

    def derivatives(self, kinds: Sequence[str]) -> list[Program]:
        return [p for kind in kinds if (p := getattr(self, kind))]

    def check(self) -> None:
        """Raise if a derivative that is at hand does not have the sizes it must have."""
        for given, name in ((self.given_tangent, "tangent"), (self.given_adjoint, "adjoint")):
            if not callable(given):
                getattr(self, name)

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
