"""Causes of gradients that are of no use, each found by a rule of its own. A new cause is a row of CAUSES and a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import ceil, inf

import torch
from torch import Tensor

from costate.audit.smoothness.events import SWITCHES, saturated
from costate.audit.smoothness.motion import Motion
from costate.audit.smoothness.report import Cause, Event

SWEEPS = 1e-2
"""Residual of hard contact, as a fraction of the largest relative speed of shapes that touch, beyond which its sweeps have not
converged."""
BALANCE = 1e-3
"""Residual of Newton's method, as a fraction of the largest contact force, beyond which it has not converged."""
SLOW = 1e-4
"""Speed below which a residual does not count [m/s]."""
FRICTION = 2.0
"""Smooth friction times step times inverse mass beyond which a step turns a sliding speed around and makes it larger."""
STIFFNESS = 4.0
"""Stiffness times step squared times inverse mass beyond which a spring is unstable with the semi-implicit method."""
COARSE = 1.0
"""The same, beyond which there are less than six steps in a period."""
SWING = 0.3
"""Angle by which a soft contact or limit swings within a substep [rad], beyond which a landing on it is not resolved."""
GRAZES = 0.1
"""Speed of approach of a grazing impact, as a fraction of the relative speed."""
BOUNCES = 4
"""Number of impacts of two shapes from which on ever shorter intervals between them are noted."""
GAP = 1e-7
"""Gap below which hard contact touches [m]."""
STEEP = 100.0
"""Growth in a single step that is worth a word."""
JAM = 1e4
"""Growth in a single step of contacts that work against each other."""
ALIKE = 0.95
"""Cosine between normals of contacts that push the same way, or against each other."""
SHARE = 0.1
"""Share of the steps in which an actuator is saturated that is worth a word."""

Finder = Callable[[Motion, Sequence[Event]], Iterator[Cause]]


def find_causes(motion: Motion, events: Sequence[Event]) -> list[Cause]:
    """Return all causes that are found in a rollout."""
    return [cause for find in CAUSES.values() for cause in find(motion, events)]


def _unconverged(motion: Motion, events: Sequence[Event]) -> Iterator[Cause]:
    if not motion.has_contacts:
        return
    residual, touching = motion.contacts.residual, motion.touching
    if motion.world.setup.contact.hard:
        speeds = motion.velocities.norm(dim=-1)
        allowed = (SWEEPS * (speeds * touching).amax(-1)).clamp(min=SLOW)
        advice = "Use cs.Hard(), or more sweeps (cs.PGS(sweeps=...)), shorter steps (substeps=), or cs.Newton()"
        unit = "m/s"
    else:
        allowed = BALANCE * motion.contacts.forces.amax(-1).clamp(min=1.0)
        advice = "Use more iterations or a smaller tolerance of the contact model"
        unit = "N"
    bad = residual > allowed
    if bool(bad.any()):
        t = int((residual / allowed).argmax())
        yield Cause(
            "unconverged", t,
            f"The solver of contact has not converged in {int(bad.sum())} of {len(bad)} steps (worst in step {t}: residual "
            f"{float(residual[t]):.2g} {unit}): forces and gradients are those of an unfinished iteration. {advice}.",
        )  # fmt: skip


def _friction_slope(motion: Motion, events: Sequence[Event]) -> Iterator[Cause]:
    speed = getattr(motion.world.setup.contact, "friction_speed", None)
    if not motion.has_contacts or speed is None:
        return
    bound, steepest = (
        motion.friction * motion.contacts.forces,
        getattr(motion.world.setup.contact, "friction_slope", inf),
    )
    slope = bound / (motion.sliding**2 + speed**2 + (bound / steepest) ** 2).sqrt()
    number = slope * motion.mobility[1] * motion.world.setup.dt * motion.touching
    if float(number.max()) > FRICTION:
        t, k = _worst(number)
        times = float(number[t, k]) / FRICTION
        yield Cause(
            "friction slope", t,
            f"Smooth friction is too steep for the step: where {motion.name(k)} sticks, a substep multiplies a sliding speed by "
            f"{1 - float(number[t, k]):.3g} (worst in step {t}), and gradients likewise. Such steps: "
            f"{int((number > FRICTION).any(-1).sum())} of {len(number)}. Use {ceil(times)} times as many substeps, or "
            f"friction_speed={times * speed:.2g}, or friction_slope={float(slope[t, k]) / times:.2g}; or cs.Newton().",
            unstable=_steps(number > FRICTION),
        )  # fmt: skip


def _stiff_contact(motion: Motion, events: Sequence[Event]) -> Iterator[Cause]:
    contact, dt = motion.world.setup.contact, motion.world.setup.dt
    if not motion.has_contacts or not contact.smooth or "stiffness" not in contact.parameters:
        return
    given = dict(motion.params or {}).get("stiffness")
    stiffness = contact.stiffness if given is None else float(torch.as_tensor(given).max())  # type: ignore[attr-defined]
    damping = getattr(contact, "damping", 0.0) * motion.contacts.forces
    number = (dt**2 * stiffness + 2 * dt * damping) * motion.mobility[0] * motion.touching
    if float(number.max()) > COARSE:
        t, k = _worst(number)
        size = float(number[t, k])
        unstable = size > STIFFNESS
        many = ceil((size / COARSE) ** 0.5)
        says = "is unstable" if unstable else "takes less than six steps per period"
        yield Cause(
            "stiff contact", t,
            f"Contact is stiff for a substep of {1e3 * dt:.3g} ms: that of {motion.name(k)} {says} (stiffness times step squared "
            f"by mass is {size:.2g}; {STIFFNESS:g} is unstable). Use {many} times as many substeps, or a stiffness lower by "
            f"a factor of {many**2}.",
            unstable=_steps(number > STIFFNESS),
        )  # fmt: skip


def _unresolved(motion: Motion, events: Sequence[Event]) -> Iterator[Cause]:
    """Find soft contacts and limits that begin or end, and swing too fast for the step."""
    setup = motion.world.setup
    switched = (motion.touching[1:] != motion.touching[:-1]).nonzero().tolist() if motion.has_contacts else []
    found = [(motion.name(k), t + 1, setup.contact.swing(setup, motion.contacts.shapes[k])) for t, k in switched]
    limits = {f"{j.name} reaches its limit": j.name for j in setup.scene.model.joints}
    found += [(e.what, e.step, setup.contact.swing(setup, limits[e.what])) for e in events if e.kind == "limit"]
    what, t, rate = max(found, key=lambda x: x[2], default=("", 0, 0.0))
    angle = rate * setup.dt
    if angle > SWING:
        yield Cause(
            "unresolved landing", t,
            f"{what} in step {t}, by a spring that swings by {angle:.2g} rad in a substep of {1e3 * setup.dt:.3g} ms ({SWING:g} is "
            "resolved): the motion depends on the phase of the step in which it begins, and gradients scatter with it. Use "
            f"{ceil(angle / SWING)} times as many substeps, or a softer solref.",
        )  # fmt: skip


def _grazing(motion: Motion, events: Sequence[Event]) -> Iterator[Cause]:
    if not motion.has_contacts or not motion.world.setup.contact.hard:
        return
    first = motion.touching[1:] & ~motion.touching[:-1]
    speed = motion.velocities.norm(dim=-1)[1:]
    approach = motion.approach[1:]
    grazes = first & (approach > 0) & (approach < GRAZES * speed) & (speed > motion.world.dt * 9.81)
    for k in sorted({int(k) for _, k in grazes.nonzero().tolist()}):
        t = int(grazes[:, k].nonzero()[0]) + 1
        share = float(approach[t - 1, k] / speed[t - 1, k])
        yield Cause(
            "grazing impact", t,
            f"{motion.name(k)} grazes in step {t}: it approaches with {100 * share:.2g} % of its speed. Where and whether it "
            "strikes depends on small changes, so gradients are large and hold for very small changes only. Choose another "
            "start, or average over disturbed ones.",
        )  # fmt: skip


def _soft_landing(motion: Motion, events: Sequence[Event]) -> Iterator[Cause]:
    """Find shapes that touch again in a step, slower than gravity makes them in it: as those do that rest on each other, but for a
    gap as small as rounding."""
    if not motion.has_contacts or not motion.world.setup.contact.hard:
        return
    gaps = motion.world.gaps(motion.x[:-1], motion.params)
    soft = motion.touching & (gaps > GAP) & (motion.approach < 9.81 * motion.world.dt)
    lands = soft & (motion.growth > STEEP)[:, None]
    if bool(lands.any()):
        t = int((motion.growth * lands.any(-1)).argmax())
        k = int(lands[t].nonzero()[0])
        yield Cause(
            "soft landing", t,
            f"{motion.name(k)} lands softly in step {t}, from a gap of {1e3 * float(gaps[t, k]):.2g} mm (such landings: "
            f"{int(lands.any(-1).sum())} of {len(lands)} steps). The slower it comes, the more the time of landing depends on its "
            "height: derivatives of such a step are large, and hold for changes as small as the gap. The steps after it forget "
            "most of them. For smooth linearisations (world.linearize) use cs.Newton() or cs.Compliant().",
        )  # fmt: skip


def _jammed(motion: Motion, events: Sequence[Event]) -> Iterator[Cause]:
    """Find steps that multiply a disturbance while two contacts of the same shapes push along one line."""
    if not motion.has_contacts or not motion.world.setup.contact.hard:
        return
    steep = motion.growth > JAM
    normals, near = motion.contacts.normals, motion.contacts.gaps < GAP
    shapes = motion.contacts.shapes
    together = torch.tensor([[i != j and a == b for j, b in enumerate(shapes)] for i, a in enumerate(shapes)])
    along = (normals @ normals.mT) * (near[:, :, None] & near[:, None, :] & together)
    jams = steep & (along.abs().amax((-2, -1)) > ALIKE)
    if bool(jams.any()):
        t = int((motion.growth * jams).argmax())
        i, j = divmod(int(along[t].abs().argmax()), along.shape[-1])
        how = "against each other" if float(along[t, i, j]) < 0 else "the same way"
        yield Cause(
            "jam", t,
            f"{motion.name(i)} is jammed in step {t}: two contact points ({min(i, j)} and {max(i, j)}, gaps "
            f"{1e3 * float(motion.contacts.gaps[t, i]):.2g} and {1e3 * float(motion.contacts.gaps[t, j]):.2g} mm) push {how}, and "
            f"the step multiplies a disturbance by {float(motion.growth[t]):.1e} (such steps: {int(jams.sum())} of {len(jams)}). "
            "How they share the force depends on changes far smaller than those of interest: compare with a difference. Start "
            "outside of the overlap, use more substeps, or leave such episodes out.",
        )  # fmt: skip


def _zeno(motion: Motion, events: Sequence[Event]) -> Iterator[Cause]:
    touches: dict[str, list[int]] = {}
    for e in events:
        if e.kind == "touches":
            touches.setdefault(e.what, []).append(e.step)
    for what, steps in touches.items():
        between = [b - a for a, b in pairwise(steps)]
        shrinks = all(b <= a for a, b in pairwise(between))
        if len(steps) >= BOUNCES and shrinks and between[-1] < 0.7 * between[0]:
            yield Cause(
                "bouncing", steps[-1],
                f"{what} again and again, {len(steps)} times and ever faster (every {between[0]} steps at first, every "
                f"{between[-1]} at last): each bounce multiplies gradients, and the last ones are shorter than a step. Raise "
                "restitution_speed so that it comes to rest earlier, or end the horizon before.",
            )  # fmt: skip


def _exhausted(motion: Motion, events: Sequence[Event]) -> Iterator[Cause]:
    contact = motion.world.setup.contact
    most = getattr(contact, "impacts", None)
    if not motion.has_contacts or most is None:
        return
    fast = motion.touching & (motion.approach > getattr(contact, "restitution_speed", 0.0))
    number = fast.sum(-1)
    if bool((number >= most).any()):
        t = int(number.argmax())
        yield Cause(
            "many impacts", t,
            f"{int(number[t])} contacts strike in step {t}, and a substep finds {most} impacts at their time "
            "(cs.Hard(impacts=...)): the others do not bounce, and their derivatives are not those of the motion. Use more "
            "impacts, or substeps.",
        )  # fmt: skip


def _saturated(motion: Motion, events: Sequence[Event]) -> Iterator[Cause]:
    for joint, dead in saturated(motion).items():
        share = float(dead.double().mean())
        if share >= SHARE:
            yield Cause(
                "saturation", int(dead.nonzero()[0]),
                f"The actuator of {joint} is saturated in {int(dead.sum())} of {len(dead)} steps, where its control has no "
                "gradient of its own. Use smaller controls, a larger limit, or a penalty on controls beyond the limit.",
            )  # fmt: skip


def _switching(motion: Motion, events: Sequence[Event]) -> Iterator[Cause]:
    switches = [e for e in events if e.kind in SWITCHES]
    if len(switches) <= max(4, len(motion.u) // 10) or not motion.world.setup.contact.hard:
        return
    slips = [e for e in switches if e.kind in ("slips", "sticks")]
    names = [e.what for e in (slips if 2 * len(slips) > len(switches) else switches)]
    most = max(dict.fromkeys(names), key=names.count)
    how = "sticking and slipping in turns" if 2 * len(slips) > len(switches) else "touching and leaving"
    yield Cause(
        "switching", switches[0].step,
        f"{len(switches)} switches of contact in {len(motion.u)} steps, mostly {how} ({most}: {names.count(most)} times): "
        "gradients of hard contact hold on one branch only. Use cs.Compliant() or cs.Newton() while optimising, or average "
        "over disturbed starts.",
    )  # fmt: skip


def _steps(found: Tensor) -> tuple[int, ...]:
    """Return the steps in which something is found at any contact point."""
    return tuple(found.any(-1).nonzero().flatten().tolist())


def _worst(number: Tensor) -> tuple[int, int]:
    """Return the step and the contact point at which a number is largest."""
    at = int(torch.where(number.isfinite(), number, 0.0).argmax())
    return at // number.shape[1], at % number.shape[1]


CAUSES: dict[str, Finder] = {
    "unconverged": _unconverged,
    "friction slope": _friction_slope,
    "stiff contact": _stiff_contact,
    "unresolved landing": _unresolved,
    "grazing impact": _grazing,
    "soft landing": _soft_landing,
    "jam": _jammed,
    "bouncing": _zeno,
    "many impacts": _exhausted,
    "saturation": _saturated,
    "switching": _switching,
}
"""Kinds of causes, and what finds them."""
