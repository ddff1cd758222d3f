"""Kernels from CasADi expressions: symbols and expressions of any shape as a function of vectors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import casadi as ca

from costate.kernel.ir.program import Builder, Program
from costate.kernel.ir.straight import as_program
from costate.kernel.ops.custom import Custom
from costate.kernel.signature import Spec


def specs_of(values: Mapping[str, ca.SX]) -> tuple[Spec, ...]:
    """Return names and shapes of expressions."""
    return tuple(Spec(n, (v.shape[0],) if v.shape[1] == 1 else v.shape) for n, v in values.items())


def check_symbols(name: str, inputs: Mapping[str, ca.SX]) -> None:
    """Raise if an input is not made of symbols."""
    for n, v in inputs.items():
        if not (isinstance(v, ca.SX) and v.is_valid_input()):
            raise ValueError(f"kernel '{name}': input '{n}' must be made of SX symbols (casadi.SX.sym), but is {v}")


def with_adjoint(program: Program, adjoint: ca.Function) -> Program:
    """Return the program with gradients given by a function."""
    b = Builder()
    op = Custom(program, None, as_program(adjoint))
    return b.finish(*b.stage(op, *(b.input(n) for n in program.in_sizes)))


def flat_function(name: str, inputs: Sequence[ca.SX], outputs: Sequence[ca.SX]) -> ca.Function:
    """Return a function of vectors. Tensors are row-major and CasADi is column-major, so matrices are transposed here."""
    dense = [ca.densify(ca.SX(v)) for v in outputs]
    fn = ca.Function(_function_name(name), list(inputs), dense, {"allow_free": True})
    if fn.has_free():
        free = ", ".join(fn.get_free())
        raise ValueError(f"kernel '{name}': the outputs use {free}, which is no input; add it to the inputs")
    if all(v.shape[1] == 1 for v in (*inputs, *outputs)):
        return fn
    flat = [ca.SX.sym(f"x{k}", v.numel()) for k, v in enumerate(inputs)]
    results = [ca.vec(ca.SX(r).T) for r in fn.call([_unflatten(x, v) for x, v in zip(flat, inputs, strict=True)])]
    return ca.Function(_function_name(name), flat, [ca.densify(r) for r in results])


def _unflatten(flat: ca.SX, like: ca.SX) -> ca.SX:
    return ca.reshape(flat, like.shape[1], like.shape[0]).T


def identifier(name: str) -> str:
    """Return a name as Python allows it."""
    cleaned = "".join(c if c.isalnum() else "_" for c in name)
    return cleaned if cleaned[:1].isalpha() else f"k{cleaned}"


def _function_name(name: str) -> str:
    """Return a name as CasADi allows it: without letters of other scripts and without two underscores in a row."""
    cleaned = re.sub("[^0-9A-Za-z]+", "_", name)
    return cleaned if cleaned[:1].isalpha() and cleaned not in ("null", "jac", "hess") else f"k{cleaned}"
