"""Recipes: what a kernel is made from, with a key that is known before anything is differentiated.

The key of a derivative is a digest of its parent's key and of what is derived, so a compiled derivative is found on disk without
redoing the differentiation. `build` does the work when it is not there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from costate.core.fork import cached_property
from costate.kernel.ir.derive import jvp, vjp
from costate.kernel.ir.program import Program, digest, ops_of
from costate.kernel.ops.custom import Custom
from costate.kernel.ops.scan import Scan
from costate.kernel.passes.jacobian import jacobian
from costate.kernel.signature import Signature, Spec


@dataclass(frozen=True)
class Primal:
    """A kernel given by its program."""

    signature: Signature
    program: Program

    @property
    def key(self) -> str:
        """Digest of everything the code depends on, but for number type and machine."""
        return self.program.key

    @cached_property
    def given(self) -> tuple[int, ...]:
        """Outputs that a backward pass takes from the forward pass instead of recomputing: states of scans, results of solves."""
        known = set()
        for s in self.program.stages:
            if isinstance(s.op, Scan) and not (s.op.counted or s.op.until):
                known.update(s.op.split_out(s.outputs)[2])
            elif isinstance(s.op, Custom):
                known.update(s.outputs)
        return tuple(k for k, v in enumerate(self.program.outputs) if v in known)

    @property
    def grids(self) -> dict[str, np.ndarray]:
        """Constant arrays the code refers to."""
        return {name: grid for op in ops_of(self.program) for name, grid in op.grids().items()}

    def build(self) -> Program:
        """Return the program."""
        return self.program


@dataclass(frozen=True)
class Derived:
    """The kernel of another one's gradients ("vjp"), tangents ("jvp") or Jacobian ("jacobian").

    "vjp_given" is a "vjp" that takes what its parent calls `given` as further inputs, from a forward pass that has them.
    """

    parent: Recipe
    kind: str
    wrt: tuple[int, ...]
    of: tuple[int, ...] = ()

    given = ()

    @cached_property
    def key(self) -> str:
        """Digest of everything the code depends on, but for number type and machine."""
        return digest(self.parent.key, self.kind, self.wrt, self.of)

    @cached_property
    def signature(self) -> Signature:
        """Names and shapes of inputs and outputs."""
        p = self.parent.signature
        if self.kind == "jvp":
            dots = [Spec(f"{p.inputs[k].name}_dot", p.inputs[k].shape) for k in self.wrt]
            outputs = [Spec(f"{s.name}_dot", s.shape) for s in p.outputs]
            return Signature(f"{p.name}.jvp", (*p.inputs, *dots), tuple(outputs))
        if self.kind == "jacobian":
            (x,), (y,) = [p.inputs[k] for k in self.wrt], [p.outputs[k] for k in self.of]
            return Signature(f"{p.name}.jacobian", p.inputs, (Spec("jacobian", (y.size, x.size)),))
        given = [p.outputs[k] for k in self._given]
        bars = [Spec(f"{p.outputs[k].name}_bar", p.outputs[k].shape) for k in self.of]
        outputs = [Spec(f"{p.inputs[k].name}_bar", p.inputs[k].shape) for k in self.wrt]
        return Signature(f"{p.name}.vjp", (*p.inputs, *given, *bars), tuple(outputs))

    @property
    def grids(self) -> dict[str, np.ndarray]:
        """Constant arrays the code refers to."""
        return self.parent.grids

    def build(self) -> Program:
        """Return the program."""
        if self.kind == "jvp":
            return jvp(self.parent.build(), self.wrt)
        if self.kind == "jacobian":
            return jacobian(self.parent.build(), self.of[0], self.wrt[0])
        return vjp(self.parent.build(), self.wrt, self.of, self._given)

    @property
    def _given(self) -> tuple[int, ...]:
        return self.parent.given if self.kind == "vjp_given" else ()


Recipe = Primal | Derived
