"""Derivatives of solutions by the implicit function theorem.

r(y, a) = 0   ->   dy = -(dr/dy)^-1 (dr/da) da,     gradient of a: -(dr/da)^T (dr/dy)^-T seed
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from costate.kernel.ir.program import Program


def implicit_derivatives(program: Program, residual: Callable[..., ca.SX]) -> tuple[ca.Function, ca.Function]:
    """Return tangent and adjoint of a program that solves residual(y, *args) = 0 for y."""
    args = [ca.SX.sym(f"a{k}", n) for k, n in enumerate(program.in_sizes)]
    (n,) = program.out_sizes
    y, seed = ca.SX.sym("y", n), ca.SX.sym("s", n)
    dots = [ca.SX.sym(f"d{k}", m) for k, m in enumerate(program.in_sizes)]
    r = residual(y, *args)
    jacobian = ca.jacobian(r, y)
    pushed = ca.jtimes(r, ca.vertcat(*args), ca.vertcat(*dots))
    tangent = ca.Function("tangent", [*args, y, *dots], [-ca.solve(jacobian, pushed)])
    multiplier = ca.solve(jacobian.T, seed)
    grads = [-ca.jtimes(r, a, multiplier, True) for a in args]
    return tangent, ca.Function("adjoint", [*args, y, seed], [ca.densify(g) for g in grads])
