"""Advice on a rollout: what explodes, grows, vanishes or stands out, why, and what to do about it."""

from __future__ import annotations

from math import log

from costate.audit.smoothness.causes import STEEP
from costate.audit.smoothness.events import SWITCHES
from costate.audit.smoothness.report import Smoothness

EXPLODES, VANISHES = 1e6, 1e-6
"""Sensitivities of the final state beyond which a gradient is of no use."""
USEFUL = 1e3
"""Factor by which a gradient may grow or shrink along a horizon that is recommended."""
FEW, MOST = 3, 0.5
"""Number of steps, and share of the growth that they make together if they are to blame."""


def advise(found: Smoothness, dt: float) -> list[str]:
    """Return findings in words. dt: length of a step [s]."""
    words = []
    if float(found.sensitivity.max()) > USEFUL:
        words.append(_grows(found, dt))
    elif float(found.growth.max()) > STEEP:
        words.append(_steep(found))
    if float(found.sensitivity[0]) < VANISHES:
        words.append(_vanishes(found))
    words += [cause.what for cause in found.causes]
    return words or [_nothing(found)]


def _nothing(found: Smoothness) -> str:
    switches = sum(e.kind in SWITCHES for e in found.events)
    return (
        f"Nothing stands out: of no state does the final one feel more than {float(found.sensitivity.max()):.2g}, and of the first "
        f"one {float(found.sensitivity[0]):.2g}; no step multiplies a disturbance by more than {float(found.growth.max()):.2g}; "
        f"switches of contact: {switches}."
    )


def _grows(found: Smoothness, dt: float) -> str:
    start = int(found.sensitivity.argmax())
    rate, largest = found.rate(start), float(found.sensitivity[start])
    says = "explodes" if largest > EXPLODES else "grows"
    first = f"The gradient {says}: the final state changes {largest:.2g} times as much as state {start}"
    if rate <= 1 or start == len(found.growth) - 1:
        return f"{first}, by the last step. {_blame(found, dt)}"
    horizon = max(int(log(USEFUL) / log(rate)), 1)
    return (
        f"{first}, a factor of {rate:.3g} per step. {_blame(found, dt)} A horizon of at most {horizon} steps keeps it below "
        f"{USEFUL:.0e}; so does feedback in the loop. Multiple shooting (cs.optimise.ilqr) copes with more."
    )


def _blame(found: Smoothness, dt: float) -> str:
    """Say what makes the growth: a step that is too long, single steps, or the motion as a whole, unstable or chaotic."""
    logs = found.stretch.clamp(min=1e-300).log()
    unstable = sorted({t for c in found.causes for t in c.unstable})
    if unstable and float(logs[unstable].sum()) > MOST * float(logs.sum()):
        kinds = ", ".join(c.kind for c in found.causes if c.unstable)
        return f"The step is too long for the contact ({kinds}): mend that first, as said below."
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
    return f"times {float(found.stretch[t]):.2g}: {_near(found, t) or 'no switch there'}"


def _near(found: Smoothness, t: int) -> str:
    """Return the events and causes of a step and its neighbours."""
    near = [e.what for e in found.events if abs(e.step - t) <= 1] + [
        c.kind for c in found.causes if abs(c.step - t) <= 1
    ]
    things = list(dict.fromkeys(near))
    return "; ".join(things[:FEW]) + f"; and {len(things) - FEW} more" * (len(things) > FEW)


def _steep(found: Smoothness) -> str:
    """Say which step has a large derivative, although the final state does not."""
    t = int(found.growth.argmax())
    near = _near(found, t)
    return (
        f"Step {t} multiplies some disturbance by {float(found.growth[t]):.2g}{f' ({near})' if near else ''}: there a small change "
        f"of a position is a large change of a velocity. It does not last: of state {t} the final state feels "
        f"{float(found.sensitivity[t]):.2g}, of the first one {float(found.sensitivity[0]):.2g}, so gradients of the whole "
        "roll-out are of use. Those of this step alone are steep; softer contact or more damping makes them less so."
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
