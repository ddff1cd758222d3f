"""Advice on a rollout: what explodes, vanishes or stands out, why, and what to do about it."""

from __future__ import annotations

from math import log

from costate.audit.smoothness.report import Smoothness

EXPLODES, VANISHES = 1e6, 1e-6
"""Sensitivities of the final state beyond which a gradient is of no use."""
USEFUL = 1e3
"""Factor by which a gradient may grow or shrink along a horizon that is recommended."""
STEEP = 100.0
"""Growth in a single step that is worth a word."""
FEW, MOST = 3, 0.5
"""Number of steps, and share of the growth that they make together if they are to blame."""
NOTHING = "Nothing stands out: gradients neither explode nor vanish, no step multiplies them, and switches are few."


def advise(found: Smoothness, dt: float) -> list[str]:
    """Return findings in words. dt: length of a step [s]."""
    words = []
    if float(found.sensitivity.max()) > EXPLODES:
        words.append(_explodes(found, dt))
    elif float(found.growth.max()) > STEEP:
        words.append(_steep(found))
    if float(found.sensitivity[0]) < VANISHES:
        words.append(_vanishes(found))
    words += [cause.what for cause in found.causes]
    return words or [NOTHING]


def _explodes(found: Smoothness, dt: float) -> str:
    start = int(found.sensitivity.argmax())
    rate, largest = found.rate(start), float(found.sensitivity[start])
    horizon = max(int(log(USEFUL) / log(rate)), 1)
    return (
        f"The gradient explodes: the final state changes {largest:.2g} times as much as state {start}, a factor of {rate:.3g} per "
        f"step. {_blame(found, dt)} Use a horizon of at most {horizon} steps, which keeps it below {USEFUL:.0e}, or multiple "
        "shooting (cs.optimise.ilqr), feedback in the loop, or softer contact."
    )


def _blame(found: Smoothness, dt: float) -> str:
    """Say whether single steps make the growth, or the motion as a whole: then it is unstable or chaotic."""
    logs = found.stretch.clamp(min=1e-300).log()
    eventful = {t for e in found.events for t in (e.step - 1, e.step, e.step + 1) if 0 <= t < len(logs)}
    ranked = logs.argsort(descending=True).tolist()
    for steps in (ranked[:FEW], [t for t in ranked if t in eventful]):
        if float(logs[steps].sum()) > MOST * float(logs.sum()):
            worst = [t for t in steps[:FEW] if float(logs[t]) > 0]
            return "Single steps make most of it: " + ", ".join(f"{t} ({_at(found, t)})" for t in worst) + "."
    return (
        f"No single step is to blame: nearby motions part all along (by a factor of e every {dt / float(logs.mean()):.2g} s), as "
        "they do where a motion is unstable or chaotic; there a gradient tells nothing about the far future."
    )


def _at(found: Smoothness, t: int) -> str:
    near = [e.what for e in found.events if abs(e.step - t) <= 1]
    near += [f"{c.kind}" for c in found.causes if abs(c.step - t) <= 1]
    return f"times {float(found.stretch[t]):.2g}: " + ("; ".join(dict.fromkeys(near)) or "no switch there")


def _steep(found: Smoothness) -> str:
    t = int(found.growth.argmax())
    near = [e.what for e in found.events if abs(e.step - t) <= 1]
    near += [c.kind for c in found.causes if abs(c.step - t) <= 1]
    why = f" ({'; '.join(dict.fromkeys(near))})" if near else ""
    return (
        f"Step {t} multiplies some disturbance by {float(found.growth[t]):.2g}{why}: there a small change of a position is a large "
        f"change of a velocity. Of state {t} the final state feels {float(found.sensitivity[t]):.2g}, of the first one "
        f"{float(found.sensitivity[0]):.2g}. If that is too large to optimise with, use softer contact or shorter steps."
    )


def _vanishes(found: Smoothness) -> str:
    first = float(found.sensitivity[0])
    if first == 0:
        return "The gradient vanishes: the final state does not depend on the first at all. Put losses along the way."
    rate = found.rate(0)
    every = max(int(log(USEFUL) / -log(rate)), 1)
    return (
        f"The gradient vanishes: the final state depends on the first by {first:.2g}, a factor of {rate:.3g} per step. Damping, "
        f"friction or a limit makes it forget the start; put a loss at least every {every} steps, not at the end alone."
    )
