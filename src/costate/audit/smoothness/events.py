"""Events of a rollout: switches of contact, joint limits, saturated actuators, and gradients that are exactly zero."""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor

from costate.audit.smoothness.motion import Motion
from costate.audit.smoothness.report import Event
from costate.audit.zeros import APART, CLAMPED
from costate.sim.forces.actuators import Servo
from costate.sim.forces.lengths import Sum
from costate.sim.setup import Drive

WORDS = {"touches": "touches", "leaves": "leaves", "slips": "slips on", "sticks": "sticks to"}
SWITCHES = tuple(WORDS)
"""Kinds of events that are switches of contact."""


def find_events(motion: Motion, slip_speed: float, limit_margin: float) -> list[Event]:
    """Return all events of a rollout, in order."""
    found = [*_contact_events(motion, slip_speed), *_limit_events(motion, limit_margin), *_saturation(motion)]
    return sorted(found, key=lambda e: e.step)


def _contact_events(motion: Motion, slip_speed: float) -> list[Event]:
    if not motion.has_contacts:
        return []
    touching = motion.touching
    slips = touching & (motion.sliding_after > slip_speed)
    events = []
    for k, (a, b) in enumerate(motion.contacts.shapes):
        for now, yes, no in ((touching[:, k], "touches", "leaves"), (slips[:, k], "slips", "sticks")):
            for t in (now[1:] != now[:-1]).nonzero().flatten().tolist():
                if yes == "slips" and not bool(touching[t, k] & touching[t + 1, k]):
                    continue  # a contact that begins or ends is no change between sticking and slipping
                kind = yes if bool(now[t + 1]) else no
                events.append(Event(t + 1, kind, f"{a} {WORDS[kind]} {b}"))
    return list(dict.fromkeys(events))


def _limit_events(motion: Motion, margin: float) -> list[Event]:
    model = motion.world.setup.scene.model
    events = []
    for j, iq in zip(model.joints, model.q_index, strict=True):
        if j.nv != 1:
            continue
        q = motion.x[:, iq]
        at = (q < float(j.lower[0]) + margin) | (q > float(j.upper[0]) - margin)
        events += [Event(t, "limit", f"{j.name} reaches its limit") for t in begins(at)]
    return events


def saturated(motion: Motion) -> dict[str, Tensor]:
    """Return the steps in which an actuator that has a limit does not follow its control, by its joint: (T,) each."""
    drives = enumerate(zip(motion.world.actuated, motion.world.setup.drives, strict=True))
    return {joint: _dead(motion, k, d) for k, (joint, d) in drives if d.limit < inf}


def _dead(motion: Motion, k: int, d: Drive) -> Tensor:
    """Return the steps in which an actuator is at its limit, (T,)."""
    dead = (motion.B[..., k] == 0).all(-1)
    if isinstance(d.actuator, Servo) and isinstance(d.length, Sum) and len(d.length.terms) == 1:
        # What it would do without its limit is part of what other servos expect: its control may move these a little.
        dead = dead | (motion.torques[:, d.v].abs() >= (1 - 1e-9) * d.limit * abs(d.length.terms[0][2]))
    return dead


def _saturation(motion: Motion) -> list[Event]:
    return [
        Event(t, "saturated", f"the actuator of {joint} saturates")
        for joint, dead in saturated(motion).items()
        for t in begins(dead)
    ]


def begins(now: Tensor) -> list[int]:
    """Return the steps in which something begins."""
    return (now & ~torch.cat([now.new_zeros(1), now[:-1]])).nonzero().flatten().tolist()


def find_zeros(motion: Motion, by_control: Tensor) -> list[str]:
    """Describe controls without any effect, and bodies that no control reaches. by_control: d x_T / d u_t, (T, 2nv, nu)."""
    world, x = motion.world, motion.x
    found = [
        f"the gradient of the control of {joint} is exactly zero in all steps{f': {CLAMPED}' if d.limit < inf else ''}"
        for k, (joint, d) in enumerate(zip(world.actuated, world.setup.drives, strict=True))
        if not bool(motion.B[..., k].any())
    ]
    if not world.nu or not world.setup.contact.hard or not world.setup.scene.pairs:
        return found
    owners = dict.fromkeys(j.name.split("/")[0] for j in world.setup.scene.model.joints if j.nv)
    driven = {joint.split("/")[0] for joint in world.actuated}
    gaps = world.gaps(x, motion.params)
    for owner in owners:
        own = world.coordinates(owner)[1]
        rows = slice(own.start - world.nq, own.stop - world.nq)
        final = torch.cat([by_control[:, rows], by_control[:, world.nv :][:, rows]], 1)
        if bool(final.any()):
            continue
        pairs = [{link.split("/")[0] for link in pair} for pair in motion.contacts.pairs]
        near = [k for k, pair in enumerate(pairs) if owner in pair and pair & driven - {owner}]
        if not near:
            found.append(
                f"no control moves {owner}: none of its shapes may touch what is actuated; see World(collide=...)"
            )
            continue
        least = gaps[:, near].min(-1).values
        at = int(least.argmin())
        found.append(
            f"no control moves {owner}: the gradient of its final state is exactly zero (nearest at step {at}, "
            f"{1e3 * float(least[at]):.3g} mm): {APART}"
        )
    return found
