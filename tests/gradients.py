"""One check for every differentiable function: value, JVP, VJP, duality, finite differences, float32 against float64.

    check_gradients(lambda q, v: robot.forward_dynamics(q, v, tau), (q, v), names=("q", "v"))

Directions are random but the same in every run. A point on a manifold (a quaternion) is checked through its tangent:
pass `lambda dq: f(retract(q, dq))` at dq = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

Tensor = torch.Tensor
Function = Callable[..., "Tensor | Sequence[Tensor]"]


@dataclass(frozen=True)
class Tolerances:
    """Largest errors allowed. All are relative: to the largest entry of the output (or of the gradient) looked at."""

    value: float = 1e-12
    """Value against the reference, and of a differentiated call against a plain one: a few thousand roundings."""
    finite_difference: float = 1e-7
    """JVP against extrapolated central differences, whose own error is near 1e-10 for smooth functions of order one."""
    noise: float = 1e-9
    """Of the largest output: what rounding leaves of a derivative that is zero, 1e-16 / h with steps h down to 1e-6."""
    duality: float = 1e-11
    """<u, J v> against <J^T u, v>, relative to |u| |J v| + |J^T u| |v|: both are exact up to rounding."""
    float32: float = 1e-4
    """Float32 against float64: a thousand roundings of 6e-8."""


@dataclass
class GradientReport:
    """Worst errors found, in the units of `Tolerances`."""

    value: float = 0.0
    finite_difference: float = 0.0
    duality: float = 0.0
    float32: float = 0.0
    checks: int = 0
    """Comparisons made."""

    def note(self, kind: str, what: str, error: float, allowed: float, hint: str) -> None:
        """Record an error; fail if it is larger than allowed (or NaN)."""
        self.checks += 1
        if not error <= allowed:
            raise AssertionError(f"{what}: {kind} error {error:.3g}, allowed {allowed:.3g}; {hint}")
        setattr(self, kind, max(getattr(self, kind), error))


def check_gradients(
    fn: Function,
    inputs: Sequence[Tensor],
    *,
    names: Sequence[str] | None = None,
    reference: Function | None = None,
    step: float = 2e-2,
    directions: int = 2,
    forward_mode: bool = True,
    float32: bool = True,
    tolerances: Tolerances | None = None,
) -> GradientReport:
    """Check a function of tensors and all its first derivatives; raises AssertionError, or returns the worst errors.

    Args:
        fn: Of float64 tensors (and float32 ones if `float32`) to a tensor or a sequence of them. Smooth within `step`.
        inputs: Where to check. Every input is differentiated.
        names: Of the inputs, for messages.
        reference: Independent computation of the value.
        step: Largest step of the finite differences, in units of the inputs; directions have entries of size one.
        directions: Random directions per input, and as many in all inputs together.
        forward_mode: Whether fn supports `torch.func.jvp`.
        float32: Whether to run fn in float32 too.
    """
    tol = tolerances or Tolerances()
    report = GradientReport()
    names = list(names or (f"input {k}" for k in range(len(inputs))))
    points = [x.detach().to(torch.float64).clone() for x in inputs]
    random = torch.Generator().manual_seed(len(points))
    value = _outputs(fn, points)
    for k, y in enumerate(value):
        if not torch.isfinite(y).all():
            raise AssertionError(f"output {k} is not finite at the point given: choose a point where it is")
    if reference is not None:
        _compare_values(report, "reference", value, _outputs(reference, points), tol.value)

    seeds = [_direction(random, y) for y in value]
    grads = _vjp(fn, points, seeds, names)
    for label, tangents in _tangents(random, points, names, directions):
        _check_direction(fn, points, value, seeds, grads, tangents, label, step, forward_mode, tol, report)
    if float32:
        _check_float32(fn, points, value, seeds, grads, names, tol, report)
    return report


def richardson(f: Callable[[float], list[Tensor]], step: float, levels: int = 8) -> tuple[list[Tensor], list[float]]:
    """df/dt at t = 0 by central differences with steps halved `levels` times and extrapolated to zero.

    Every entry of the tableau is compared with its two parents; the one that moved least wins (Ridders 1982).
    Returns derivatives and how far each can be trusted.
    """
    tableau: list[list[list[Tensor]]] = []
    best: list[Tensor] = []
    errors: list[float] = []
    for k in range(levels):
        h = step / 2**k
        row = [[(a - b) / (2 * h) for a, b in zip(f(h), f(-h), strict=True)]]
        for j in range(k):
            factor = 4.0 ** (j + 1)
            above = tableau[-1][j]
            row.append([(factor * x - y) / (factor - 1) for x, y in zip(row[j], above, strict=True)])
        if not tableau:
            best, errors = row[0], [float("inf")] * len(row[0])
        for j in range(1, len(row)):
            for i, candidate in enumerate(row[j]):
                moved = max(_largest(candidate - row[j - 1][i]), _largest(candidate - tableau[-1][j - 1][i]))
                if moved < errors[i]:
                    best[i], errors[i] = candidate, moved
        tableau.append(row)
    return best, errors


def _check_direction(fn, points, value, seeds, grads, tangents, label, step, forward_mode, tol, report) -> None:
    """One direction v: J v against finite differences, and <u, J v> against <J^T u, v>."""

    def along(t: float) -> list[Tensor]:
        return _outputs(fn, [x + t * v for x, v in zip(points, tangents, strict=True)])

    found, trust = richardson(along, step)
    pushed = found
    if forward_mode:
        primal, pushed = _jvp(fn, points, tangents)
        _compare_values(report, "the value under jvp", primal, value, tol.value)
    for k, (fd, jv, y, sure) in enumerate(zip(found, pushed, value, trust, strict=True)):
        scale = _largest(fd) + tol.noise / tol.finite_difference * _largest(y)
        if y.numel() and sure > 0.5 * tol.finite_difference * scale:
            raise AssertionError(
                f"d output {k} / d {label}: finite differences are uncertain by {sure / scale:.3g}: the function is "
                f"not smooth within {step:g} of the point; choose another point or a smaller step"
            )
        error = _largest(jv - fd) / scale if y.numel() else 0.0
        hint = f"JVP {_show(jv)}, finite differences {_show(fd)}"
        report.note("finite_difference", f"d output {k} / d {label}", error, tol.finite_difference, hint)

    left = sum(float((u * jv).sum()) for u, jv in zip(seeds, pushed, strict=True))
    right = sum(float((g * v).sum()) for g, v in zip(grads, tangents, strict=True))
    scale = sum(_norm(u) * _norm(jv) for u, jv in zip(seeds, pushed, strict=True))
    scale += sum(_norm(g) * _norm(v) for g, v in zip(grads, tangents, strict=True))
    error = abs(left - right) / scale if scale else abs(left - right)
    allowed = tol.duality if forward_mode else tol.finite_difference
    report.note("duality", f"<u, J v> = <J^T u, v> for {label}", error, allowed, f"JVP {left:.16g}, VJP {right:.16g}")


def _check_float32(fn, points, value, seeds, grads, names, tol, report) -> None:
    """The same function in float32: value and gradients near those of float64, and of type float32."""
    # Rounded inputs, so that float64 is asked at the very point float32 sees.
    narrow = [x.to(torch.float32) for x in points]
    wide = [x.to(torch.float64) for x in narrow]
    near, far = _outputs(fn, narrow), _outputs(fn, wide)
    for k, (a, b) in enumerate(zip(near, far, strict=True)):
        if a.dtype != torch.float32:
            raise AssertionError(f"output {k} is {a.dtype} for float32 inputs; expected torch.float32")
        report.note(
            "float32", f"output {k} in float32", _relative(a.double(), b), tol.float32, f"{_show(a)}, {_show(b)}"
        )
    near_grads = _vjp(fn, narrow, [u.to(torch.float32) for u in seeds], names)
    far_grads = _vjp(fn, wide, [u.to(torch.float32).to(torch.float64) for u in seeds], names)
    for name, a, b in zip(names, near_grads, far_grads, strict=True):
        error = _relative(a.double(), b)
        report.note("float32", f"gradient of {name} in float32", error, tol.float32, f"{_show(a)}, {_show(b)}")


def _compare_values(report, what: str, found: list[Tensor], expected: list[Tensor], allowed: float) -> None:
    if len(found) != len(expected):
        raise AssertionError(f"{what}: {len(found)} outputs against {len(expected)}")
    for k, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a.shape != b.shape:
            raise AssertionError(f"{what}: output {k} has shape {tuple(a.shape)} against {tuple(b.shape)}")
        report.note("value", f"output {k} against {what}", _relative(a, b), allowed, f"{_show(a)}, {_show(b)}")


def _outputs(fn: Function, points: Sequence[Tensor]) -> list[Tensor]:
    result = fn(*points)
    return [result] if isinstance(result, Tensor) else list(result)


def _jvp(fn: Function, points: list[Tensor], tangents: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    result = torch.func.jvp(lambda *x: tuple(_outputs(fn, x)), tuple(points), tuple(tangents))
    return list(result[0]), list(result[1])


def _vjp(fn: Function, points: Sequence[Tensor], seeds: Sequence[Tensor], names: Sequence[str]) -> list[Tensor]:
    """J^T u by backward; every gradient has the shape and type of its input."""
    leaves = [x.detach().clone().requires_grad_() for x in points]
    pairs = [(y, u) for y, u in zip(_outputs(fn, leaves), seeds, strict=True) if y.requires_grad]
    if not pairs:
        raise AssertionError("no output depends on the inputs: there is no gradient to check")
    found = torch.autograd.grad([y for y, _ in pairs], leaves, [u for _, u in pairs], allow_unused=True)
    grads = []
    for name, x, g in zip(names, leaves, found, strict=True):
        if g is not None and (g.shape, g.dtype) != (x.shape, x.dtype):
            raise AssertionError(
                f"the gradient of {name} is {g.dtype} {tuple(g.shape)}; expected {x.dtype} {tuple(x.shape)}"
            )
        grads.append(torch.zeros_like(x) if g is None else g)
    return grads


def _tangents(random: torch.Generator, points: list[Tensor], names: list[str], directions: int):
    """(label, direction) for each input alone, then for all together."""
    for k, name in enumerate(names):
        for n in range(directions):
            chosen = [_direction(random, x) if i == k else torch.zeros_like(x) for i, x in enumerate(points)]
            yield f"{name} (direction {n})", chosen
    if len(points) > 1:
        for n in range(directions):
            yield f"all inputs (direction {n})", [_direction(random, x) for x in points]


def _direction(random: torch.Generator, like: Tensor) -> Tensor:
    return 2 * torch.rand(like.shape, generator=random, dtype=torch.float64) - 1


def _largest(x: Tensor) -> float:
    return float(x.detach().abs().max()) if x.numel() else 0.0


def _norm(x: Tensor) -> float:
    return float(x.detach().norm())


def _relative(a: Tensor, b: Tensor) -> float:
    scale = _largest(b)
    return _largest(a.detach() - b.detach()) / (scale or 1.0)


def _show(x: Tensor) -> str:
    """The first few numbers."""
    flat = x.detach().reshape(-1)
    return "[" + ", ".join(f"{float(v):.9g}" for v in flat[:4]) + (", ...]" if flat.numel() > 4 else "]")
