"""One check for every differentiable function: value, JVP, VJP, duality, second order, float32 against float64.

    report = cs.gradcheck(lambda q, v: robot.forward_dynamics(q, v, tau), (q, v), names=("q", "v"))
    print(report)
    assert report.ok

A derivative is checked along random directions v, which are the same in every run. Forward mode gives J v, which is compared with
finite differences of the function. Reverse mode gives J^T u for random u, which must satisfy <u, J v> = <J^T u, v>. Where the
function has a kink nearby, smaller steps and differences of one side are tried (compare.py). What still cannot be compared makes
the verdict "not compared", which is neither right nor wrong. An error that is small against the terms that cancel in a result
is rounding (rounding.py).

Differences over tiny steps know nothing of the time at which a contact begins within a step, which derivatives of `Newton` know:
worlds are checked with the derivatives of their steps as they are computed (`Newton(event_times=False)`).

A point on a manifold (a quaternion) is checked through its tangent: pass `lambda dq: f(retract(q, dq))` at dq = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from costate.audit.check import FLAT, Check, GradientReport, Tolerances
from costate.audit.compare import Slopes, Verdict
from costate.audit.finite_difference import largest
from costate.audit.rounding import terms
from costate.sim.inputs import derivatives_as_computed

Function = Callable[..., "Tensor | Sequence[Tensor]"]

ROUNDING = torch.finfo(torch.float32).eps
ZERO = torch.zeros((), dtype=torch.float64)

_ON_A_KINK = "the point is on a kink; the derivative is one of the one-sided ones or between them"
_NOT_SETTLED = (
    "differences do not settle, down to steps of {:.0e} and from either side (uncertain by {:.1g}): the function is not smooth "
    "at the point, or rounds too much for these steps; choose another point or a larger step"
)
_ROUNDS_ACROSS = "within the rounding of float32 the function switches, in float64, too"


@derivatives_as_computed()
def gradcheck(
    fn: Function,
    inputs: Sequence[Tensor],
    *,
    names: Sequence[str] | None = None,
    reference: Function | None = None,
    step: float = 2e-2,
    directions: int = 2,
    forward_mode: bool = True,
    second_order: bool = True,
    float32: bool = True,
    tolerances: Tolerances | None = None,
    scale: float = 0.0,
) -> GradientReport:
    """Check a function of tensors and its derivatives.

    Args:
        fn: Function of float64 tensors (and of float32 ones if `float32`) that returns a tensor or a sequence of them.
        inputs: Point at which to check. Every input is differentiated.
        names: Names of the inputs, for messages.
        reference: Independent computation of the value.
        step: Largest step of the finite differences, in units of the inputs; directions have entries of size one.
        directions: Number of random directions per input, and of those in all inputs together.
        forward_mode: Use `torch.func.jvp`, which fn must then support.
        second_order: Check the derivative of the gradient, too.
        float32: Run fn in float32, too.
        tolerances: Largest errors allowed.
        scale: Size of the terms that cancel in the outputs, where that is known: rounding of an output that is zero, and of its
            derivatives, is judged by it.
    """
    names = list(names or (f"input {k}" for k in range(len(inputs))))
    for name, x in zip(names, inputs, strict=False):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name} is a {type(x).__name__}; expected tensors, such as torch.tensor({x!r})")
    points = [x.detach().to(torch.float64).clone() for x in inputs]
    audit = _Audit(fn, points, names, step, forward_mode, tolerances or Tolerances(), scale)
    if not audit.is_finite():
        return audit.report
    if reference is not None:
        audit.compare_values("reference", audit.value, _outputs(reference, points))
    audit.first_order(directions)
    if second_order and not audit.report.failures:
        audit.second_order()
    if float32:
        audit.float32()
    return audit.report


class _Audit:
    """The check of one function at one point, and what it has found so far."""

    def __init__(self, fn: Function, points, names, step: float, forward_mode: bool, tol: Tolerances, scale: float):
        self.fn, self.points, self.names, self.step, self.forward_mode, self.tol = (
            fn, points, names, step, forward_mode, tol,
        )  # fmt: skip
        self.scale = scale
        self.report = GradientReport()
        self.random = torch.Generator().manual_seed(len(points))
        self.value = _outputs(fn, points)
        self.seeds = [_direction(self.random, y) for y in self.value]
        self.grads: list[Tensor] = []
        self.flat = set(names)
        """Names of inputs along which nothing has changed so far."""

    def note(self, kind: str, what: str, error: float, allowed: float, hint: str, wrt: str = "", **found: bool) -> None:
        self.report.checks.append(Check(kind, what, error, allowed, hint, wrt, **found))

    def note_slope(
        self, kind: str, what: str, found: Verdict, allowed: float, unsure: str, hint: str, wrt: str
    ) -> None:
        """Note a comparison with differences. unsure: what to say where they do not settle."""
        right = found.error <= allowed
        hint = hint if not right else _ON_A_KINK if found.kink else hint if found.compared else unsure
        self.note(kind, what, found.error, allowed, hint, wrt, compared=found.compared or not right, kink=found.kink)

    def is_finite(self) -> bool:
        bad = [k for k, y in enumerate(self.value) if not torch.isfinite(y).all()]
        for k in bad:
            hint = "choose a point where it is finite"
            self.note("value", f"output {k} is not finite at the point given", float("inf"), 0.0, hint)
        return not bad

    def compare_values(self, what: str, found: list[Tensor], expected: list[Tensor], kind: str = "value") -> None:
        if [a.shape for a in found] != [b.shape for b in expected]:
            shapes = [tuple(a.shape) for a in found], [tuple(b.shape) for b in expected]
            self.note("type", f"{what}: shapes {shapes[0]} against {shapes[1]}", float("inf"), 0.0, "")
            return
        for k, (a, b) in enumerate(zip(found, expected, strict=True)):
            error = _relative(a, b)
            self.note(kind, f"output {k} against {what}", error, self.tol.value, f"{_show(a)}, {_show(b)}")

    # --- first derivatives ------------------------------------------------------------------------------------------

    def first_order(self, directions: int) -> None:
        self.grads = self.vjp(self.points, self.seeds)
        for name, label, tangents in _tangents(self.random, self.points, self.names, directions):
            self.direction(name, label, tangents)
        for name, g in zip(self.names, self.grads, strict=True):
            if name in self.flat and g.numel() and not bool(g.any()):
                self.report.zeros[name] = FLAT

    def direction(self, name: str, label: str, tangents: list[Tensor]) -> None:
        """Check one direction v: J v against finite differences, and <u, J v> against <J^T u, v>."""

        def along(t: float) -> list[Tensor]:
            return _outputs(self.fn, [x + t * v for x, v in zip(self.points, tangents, strict=True)])

        tol = self.tol.finite_difference
        floor = [self.tol.noise / tol * max(largest(y), self.scale) for y in self.value]
        slopes = Slopes(along, self.value, self.step, tol, floor)
        if any(map(largest, slopes.central.slopes)):
            self.flat.discard(name)
        if not self.forward_mode:
            self.backward_alone(name, label, tangents, slopes)
            return
        primal, pushed = _jvp(self.fn, self.points, tangents)
        self.compare_values("the plain value", primal, self.value, kind="primal")
        for k, jv in enumerate(pushed):
            if not jv.numel():
                continue
            hint = f"JVP {_show(jv)}, finite differences {_show(slopes.central.slopes[k])}"
            what, unsure = f"d output {k} / d {label}", self.unsure(slopes, k)
            self.note_slope("finite_difference", what, slopes.compare(k, jv), tol, unsure, hint, name)
        self.duality(name, label, tangents, pushed)

    def unsure(self, slopes: Slopes, k: int) -> str:
        return _NOT_SETTLED.format(slopes.central.step, slopes.uncertainty(k))

    def backward_alone(self, name: str, label: str, tangents: list[Tensor], slopes: Slopes) -> None:
        """Check <J^T u, v> against differences where there is no J v."""
        what, tol = f"<u, J v> = <J^T u, v> for {label}, J v by differences", self.tol.finite_difference
        product, size = self.product(self.grads, tangents)
        size += sum(
            _norm(u) * _norm(s) for u, s in zip(self.seeds, slopes.central.slopes, strict=True) if slopes.settled
        )
        found = slopes.compare_product(self.seeds, product, size)
        worst = max(range(len(self.value)), key=slopes.uncertainty)
        hint = f"VJP {product:.9g}, differences {self.product(self.seeds, slopes.central.slopes)[0]:.9g}"
        self.note_slope("finite_difference", what, found, tol, self.unsure(slopes, worst), hint, name)

    def duality(self, name: str, label: str, tangents: list[Tensor], pushed: list[Tensor]) -> None:
        (left, one), (right, other) = self.product(self.seeds, pushed), self.product(self.grads, tangents)
        error = _ratio(abs(left - right), one + other)
        if error > self.tol.duality:
            away = [_direction(self.random, x) for x in self.points]
            error = min(error, _ratio(abs(left - right), sum(terms(lambda t: self.products(tangents, away, t)))))
        hint = f"JVP {left:.16g}, VJP {right:.16g}"
        self.note("duality", f"<u, J v> = <J^T u, v> for {label}", error, self.tol.duality, hint, name)

    def product(self, a: Sequence[Tensor], b: Sequence[Tensor]) -> tuple[float, float]:
        """Compute the inner product of two lists of tensors, and its largest possible size."""
        pairs = list(zip(a, b, strict=True))
        return sum(float((x * y).sum()) for x, y in pairs), sum(_norm(x) * _norm(y) for x, y in pairs)

    def products(self, tangents: list[Tensor], away: list[Tensor], t: float) -> list[Tensor]:
        """Compute <u, J v> and <J^T u, v> at a distance t along a direction."""
        at = [x + t * d for x, d in zip(self.points, away, strict=True)]
        left = sum(((u * jv).sum() for u, jv in zip(self.seeds, _jvp(self.fn, at, tangents)[1], strict=True)), ZERO)
        right = sum(((g * v).sum() for g, v in zip(self.vjp(at, self.seeds), tangents, strict=True)), ZERO)
        return [left, right]

    # --- second derivatives -----------------------------------------------------------------------------------------

    def second_order(self) -> None:
        """Check H v, the derivative of J^T u along v in all inputs together, against extrapolated differences of J^T u."""
        tangents = [_direction(self.random, x) for x in self.points]
        found = self.hvp(tangents)

        def along(t: float) -> list[Tensor]:
            return self.vjp([x + t * v for x, v in zip(self.points, tangents, strict=True)], self.seeds)

        tol = self.tol.second_order
        floor = [self.tol.noise / tol * max(self.scale, *map(largest, self.grads))] * len(self.grads)
        slopes = Slopes(along, self.grads, self.step, tol, floor)
        for k, name in enumerate(self.names):
            hint = f"AD {_show(found[k])}, finite differences {_show(slopes.central.slopes[k])}"
            what, unsure = f"derivative of the gradient of {name}", self.unsure(slopes, k)
            self.note_slope("second_order", what, slopes.compare(k, found[k]), tol, unsure, hint, name)

    def hvp(self, tangents: list[Tensor]) -> list[Tensor]:
        """Compute H v by a backward pass through the backward pass."""
        leaves = [x.detach().clone().requires_grad_() for x in self.points]
        outputs = _outputs(self.fn, leaves)
        first = torch.autograd.grad(outputs, leaves, self.seeds, allow_unused=True, create_graph=True)
        pairs = [(g, v) for g, v in zip(first, tangents, strict=True) if g is not None and g.requires_grad]
        if not pairs:
            return [torch.zeros_like(x) for x in leaves]
        second = torch.autograd.grad([g for g, _ in pairs], leaves, [v for _, v in pairs], allow_unused=True)
        return [torch.zeros_like(x) if h is None else h for x, h in zip(leaves, second, strict=True)]

    # --- number types -----------------------------------------------------------------------------------------------

    def float32(self) -> None:
        """Check the function in float32: value and gradients are near those of float64, and of type float32."""
        # The inputs are rounded first, so that both types are evaluated at the same point.
        narrow = [x.to(torch.float32) for x in self.points]
        wide = [x.to(torch.float64) for x in narrow]
        near, far = _outputs(self.fn, narrow), _outputs(self.fn, wide)
        for k, y in enumerate(near):
            if y.dtype != torch.float32:
                what = f"output {k} is {y.dtype} for float32 inputs; expected torch.float32"
                hint = "float64 numbers inside promote it; where they are meant to be there, pass float32=False"
                self.note("type", what, float("inf"), 0.0, hint)
                return
        seeds = [u.to(torch.float32) for u in self.seeds]
        found = [*near, *self.vjp(narrow, seeds)]
        expected = [*far, *self.vjp(wide, [u.to(torch.float64) for u in seeds])]
        errors = [_relative(a.double(), b) for a, b in zip(found, expected, strict=True)]
        if any(not e <= self.tol.float32 for e in errors):
            along = [_direction(self.random, x).to(torch.float32) for x in self.points]

            def nearby(t: float) -> list[Tensor]:
                at = [x + t * v for x, v in zip(narrow, along, strict=True)]
                return [*_outputs(self.fn, at), *self.vjp(at, seeds)]

            sizes = terms(nearby, torch.float32)
            errors = [_relative(a.double(), b, s) for a, b, s in zip(found, expected, sizes, strict=True)]
        labels = [(f"output {k} in float32", "") for k in range(len(near))]
        labels += [(f"gradient of {name} in float32", name) for name in self.names]
        jumps = [0.0] * len(errors) if all(e <= self.tol.float32 for e in errors) else self.jumps(wide, seeds, expected)
        for (what, name), error, jump, a, b in zip(labels, errors, jumps, found, expected, strict=True):
            # A switch that is nearer than the rounding of an input, and as large as the error, tells nothing about float32.
            if error > self.tol.float32 and jump > 0.5 * error:
                self.note("float32", what, error, self.tol.float32, _ROUNDS_ACROSS, name, compared=False)
            else:
                self.note("float32", what, error, self.tol.float32, f"{_show(a)}, {_show(b)}", name)

    def jumps(self, points: list[Tensor], seeds: list[Tensor], middle: list[Tensor]) -> list[float]:
        """Compute how much outputs and gradients change, in float64, within a few roundings of float32 around a point."""
        found = [0.0] * len(middle)
        along = [_direction(self.random, x) for x in points]
        for t in (-16, -4, 4, 16):
            at = [x + t * ROUNDING * v * (1 + x.abs()) for x, v in zip(points, along, strict=True)]
            values = [*_outputs(self.fn, at), *self.vjp(at, [u.to(torch.float64) for u in seeds])]
            found = [max(f, _relative(a, b)) for f, a, b in zip(found, values, middle, strict=True)]
        return found

    def vjp(self, points: Sequence[Tensor], seeds: Sequence[Tensor]) -> list[Tensor]:
        """Compute J^T u by a backward pass, and check that every gradient has the shape and type of its input."""
        leaves = [x.detach().clone().requires_grad_() for x in points]
        pairs = [(y, u) for y, u in zip(_outputs(self.fn, leaves), seeds, strict=True) if y.requires_grad]
        if not pairs:
            what = "no output depends on the inputs: there is no gradient to check"
            self.note("type", what, float("inf"), 0.0, "something on the way detaches them")
            return [torch.zeros_like(x) for x in leaves]
        found = torch.autograd.grad([y for y, _ in pairs], leaves, [u for _, u in pairs], allow_unused=True)
        for name, x, g in zip(self.names, leaves, found, strict=True):
            if g is not None and (g.shape, g.dtype) != (x.shape, x.dtype):
                what = f"the gradient of {name} is {g.dtype} {tuple(g.shape)}; expected {x.dtype} {tuple(x.shape)}"
                self.note("type", what, float("inf"), 0.0, "", name)
        return [torch.zeros_like(x) if g is None else g.detach() for x, g in zip(leaves, found, strict=True)]


def _outputs(fn: Function, points: Sequence[Tensor]) -> list[Tensor]:
    result = fn(*points)
    return [result] if isinstance(result, Tensor) else list(result)


def _jvp(fn: Function, points: list[Tensor], tangents: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    result = torch.func.jvp(lambda *x: tuple(_outputs(fn, x)), tuple(points), tuple(tangents))
    return list(result[0]), list(result[1])


def _tangents(random: torch.Generator, points: list[Tensor], names: list[str], directions: int) -> Iterator:
    """Yield (input, label, direction) for each input alone, then for all together."""
    for k, name in enumerate(names):
        for n in range(directions):
            chosen = [_direction(random, x) if i == k else torch.zeros_like(x) for i, x in enumerate(points)]
            yield name, f"{name} (direction {n})", chosen
    if len(points) > 1:
        for n in range(directions):
            yield "", f"all inputs (direction {n})", [_direction(random, x) for x in points]


def _direction(random: torch.Generator, like: Tensor) -> Tensor:
    return 2 * torch.rand(like.shape, generator=random, dtype=torch.float64) - 1


def _norm(x: Tensor) -> float:
    return float(x.detach().norm())


def _relative(a: Tensor, b: Tensor, floor: float = 0.0) -> float:
    return _ratio(largest(a.detach() - b.detach()), max(largest(b), floor))


def _ratio(error: float, scale: float) -> float:
    return error / (scale or 1.0)


def _show(x: Tensor) -> str:
    """Format the first four numbers."""
    flat = x.detach().reshape(-1)
    return "[" + ", ".join(f"{float(v):.9g}" for v in flat[:4]) + (", ...]" if flat.numel() > 4 else "]")
