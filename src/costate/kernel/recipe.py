"""Recipes: what a kernel is made from, with a key that is known before anything is differentiated.

The key of a derivative is a digest of its parent's key and of what is derived, so a compiled derivative is found on disk without
redoing the differentiation. `build` does the work when it is not there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from costate.core.fork import cached_property
from costate.kernel.ir.derive import jvp, vjp
from costate.kernel.ir.program import DYNAMIC, Builder, Program, Var, digest, ops_of
from costate.kernel.ir.prune import prune
from costate.kernel.ir.straight import Straight
from costate.kernel.ops.custom import Custom
from costate.kernel.ops.scan import Scan
from costate.kernel.passes.jacobian import jacobian
from costate.kernel.signature import Signature, Spec

KINDS = ("adjoint", "tangent")
"""Kinds of derivatives that an op may be given."""


@dataclass(frozen=True)
class Primal:
    """A kernel given by its program."""

    signature: Signature
    program: Program

    def key_with(self, kinds: tuple[str, ...]) -> str:
        """Return a digest of all that the code and its derivatives of these kinds depend on, but for number type and machine."""
        return self.program.key_with(kinds)

    @cached_property
    def given(self) -> tuple[int, ...]:
        """Outputs that a backward pass takes from the forward pass instead of recomputing: states of scans, results of solves."""
        known = set()
        for s in self.program.stages:
            if isinstance(s.op, Scan) and not (s.op.counted or s.op.until):
                _, results, states = s.op.split_out(s.outputs)
                known.update(states, (results[k] for k in s.op.inner_states))
            elif isinstance(s.op, Custom):
                known.update(s.outputs)
        return tuple(k for k, v in enumerate(self.program.outputs) if v in known)

    def grids(self, kinds: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
        """Return the constant arrays the code refers to, and those of derivatives that it is given."""
        return {name: grid for op in ops_of(self.program, kinds) for name, grid in op.grids().items()}

    def build(self) -> Program:
        """Return the program."""
        return self.program


@dataclass(frozen=True)
class Derived:
    """The kernel of another one's gradients ("vjp"), tangents ("jvp") or Jacobian ("jacobian").

    A Jacobian is that of the first output in `of`, and comes with the values of the others; "jacobian_at_zero" is the one where the
    input in `wrt` is zero, which then is not an input of the kernel.

    "vjp_given" is a "vjp" that takes what its parent calls `given` as further inputs, from a forward pass that has them.
    A loop of dynamic length cannot keep its states to itself: "states" is a kernel that returns those of its parent, and
    "vjp_states" a "vjp" that takes them as further inputs.
    """

    parent: Recipe
    kind: str
    wrt: tuple[int, ...]
    of: tuple[int, ...] = ()

    given = ()

    def key_with(self, kinds: tuple[str, ...]) -> str:
        """Return a digest of all that the code and its derivatives of these kinds depend on, but for number type and machine."""
        return digest(self.parent.key_with(self._needs(kinds)), self.kind, self.wrt, self.of)

    def _needs(self, kinds: tuple[str, ...]) -> tuple[str, ...]:
        """Return which derivatives that its parent is given the code depends on. kinds: which derivatives of the code do."""
        own = {"jvp": {"tangent"}, "states": set[str]()}.get(self.kind, {"adjoint"})
        both = self.kind.startswith("jacobian")
        return KINDS if both else tuple(sorted(own.union(kinds)))

    @cached_property
    def signature(self) -> Signature:
        """Names and shapes of inputs and outputs."""
        p = self.parent.signature
        if self.kind == "jvp":
            dots = [Spec(f"{p.inputs[k].name}_dot", p.inputs[k].shape) for k in self.wrt]
            outputs = [Spec(f"{s.name}_dot", s.shape) for s in p.outputs]
            return Signature(f"{p.name}.jvp", (*p.inputs, *dots), tuple(outputs))
        if self.kind in ("jacobian", "jacobian_at_zero"):
            x, y = p.inputs[self.wrt[0]], p.outputs[self.of[0]]
            inputs = [s for s in p.inputs if s is not x or self.kind == "jacobian"]
            outputs = [Spec("jacobian", (y.size, x.size)), *(p.outputs[k] for k in self.of[1:])]
            return Signature(f"{p.name}.jacobian", tuple(inputs), tuple(outputs))
        if self.kind == "states":
            return Signature(f"{p.name}.states", p.inputs, self._remembering[1])
        given = self._remembering[1] if self.kind == "vjp_states" else [p.outputs[k] for k in self._given]
        bars = [Spec(f"{p.outputs[k].name}_bar", p.outputs[k].shape) for k in self.of]
        outputs = [Spec(f"{p.inputs[k].name}_bar", p.inputs[k].shape) for k in self.wrt]
        return Signature(f"{p.name}.vjp", (*p.inputs, *given, *bars), tuple(outputs))

    def grids(self, kinds: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
        """Return the constant arrays the code refers to, and those of derivatives that it is given."""
        return self.parent.grids(self._needs(kinds))

    def build(self) -> Program:
        """Return the program."""
        if self.kind == "jvp":
            return jvp(self.parent.build(), self.wrt)
        if self.kind == "jacobian":
            return jacobian(self.parent.build(), self.of[0], self.wrt[0], self.of[1:])
        if self.kind == "jacobian_at_zero":
            program = jacobian(self.parent.build(), self.of[0], self.wrt[0], self.of[1:])
            return with_zero(program, self.wrt[0])
        if self.kind == "states":
            program, states = self._remembering
            return prune(replace(program, outputs=program.outputs[len(program.outputs) - len(states) :]))
        program = self._remembering[0] if self.kind == "vjp_states" else self.parent.build()
        return vjp(program, self.wrt, self.of, self._given)

    @cached_property
    def _given(self) -> tuple[int, ...]:
        if self.kind == "vjp_states":
            program, states = self._remembering
            return tuple(range(len(program.outputs) - len(states), len(program.outputs)))
        return self.parent.given if self.kind == "vjp_given" else ()

    @cached_property
    def _remembering(self) -> tuple[Program, tuple[Spec, ...]]:
        """The parent's program with the states of its dynamic loops as further outputs, and what these are."""
        return with_states(self.parent.build())


def with_zero(program: Program, k: int) -> Program:
    """Return a program with zeros in place of input k."""
    b = Builder()
    zero = b.stage(Straight.of("zero", [], [ca.SX.zeros(program.in_sizes[k])]))
    ins = [zero[0] if i == k else b.input(n) for i, n in enumerate(program.in_sizes)]
    return b.finish(*b.inline(program, *ins))


def with_states(program: Program) -> tuple[Program, tuple[Spec, ...]]:
    """Return a program that also gives the states of its loops of dynamic length, and what these are."""
    b = Builder()
    values: dict[Var, Var] = {v: b.input(v.size) for v in program.inputs}
    states: list[Var] = []
    for s in program.stages:
        op = s.op.with_states() if isinstance(s.op, Scan) and s.op.steps == DYNAMIC else s.op
        found = b.stage(op, *(values[v] for v in s.inputs))
        if isinstance(op, Scan) and isinstance(s.op, Scan) and op is not s.op:
            finals, results, every = op.split_out(found)
            states += every
            found = [*finals, *results, *(x for x, kept in zip(every, s.op.keep, strict=True) if kept)]
        values.update(zip(s.outputs, found, strict=True))
    specs = [Spec(f"states{k}", (DYNAMIC + 1, v.size // (DYNAMIC + 1))) for k, v in enumerate(states)]
    return b.finish(*(values[v] for v in program.outputs), *states), tuple(specs)


Recipe = Primal | Derived
