"""Smoothness of a rollout: switches of contact, limits, saturated controls, and the growth of gradients along it.

print(cs.diagnose(world, states, controls))
cs.diagnose(world, states, controls).page().save("smoothness.html")
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import casadi as ca
import torch
from torch import Tensor

from costate.audit.zeros import APART, CLAMPED
from costate.kernel import Kernel, ProgramBuilder
from costate.physics.kinematics import body_poses
from costate.report import Report
from costate.sim import World
from costate.sim.contact.rows import relative_jacobian
from costate.sim.inputs import Params
from costate.sim.setup import Setup, Symbols

if TYPE_CHECKING:
    from matplotlib.figure import Figure


EXPLODES, VANISHES = 1e6, 1e-6
"""Sensitivities of the final state beyond which a gradient is of no use."""
USEFUL = 1e3
"""Factor by which a gradient may grow or shrink along a horizon that is recommended."""
TOUCH = 1e-9
"""Normal force above which shapes count as touching [N]."""


@dataclass(frozen=True)
class Event:
    """Something that happens between two states."""

    step: int
    kind: str
    """Kind of the event: touches | leaves | slips | sticks | limit | saturated."""
    what: str


@dataclass(frozen=True)
class Smoothness:
    """The obstacles between the controls and a useful gradient."""

    events: list[Event]
    sensitivity: Tensor
    """Largest singular value of d x_T / d x_t in the tangent space, (T + 1,)."""
    growth: Tensor
    """Largest singular value of d x_{t+1} / d x_t, (T,)."""
    control: Tensor
    """Largest singular value of d x_T / d u_t, (T,)."""
    zeros: list[str]
    """Gradients that are exactly zero, and what to choose instead."""
    advice: list[str]

    def rate(self, start: int) -> float:
        """Compute the factor per step by which the sensitivity grows from a state to the final one, as a geometric mean."""
        return float(self.sensitivity[start]) ** (1 / (len(self.sensitivity) - 1 - start))

    def __str__(self) -> str:
        kinds = [e.kind for e in self.events]
        counts = ", ".join(f"{kinds.count(k)} x {k}" for k in dict.fromkeys(kinds)) or "no switches"
        lines = [
            f"{len(self.growth)} steps: {counts}",
            f"|d final / d first state| = {float(self.sensitivity[0]):.3g}; largest growth in a step "
            f"{float(self.growth.max()):.3g}, at step {int(self.growth.argmax())}",
        ]
        lines += [f"step {e.step}: {e.what}" for e in self.events[:20]]
        lines += [f"... and {len(self.events) - 20} more"] * (len(self.events) > 20)
        return "\n".join([*lines, *self.zeros, *self.advice])

    def figure(self) -> Figure:
        """Plot sensitivity and growth over the steps, with the switches marked."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 4.5), layout="constrained")
        top, bottom = figure.subplots(2, 1, sharex=True)
        top.semilogy(self.sensitivity.clamp(min=1e-300), label="of the final state to state t")
        if self.control.numel():
            top.semilogy(self.control.clamp(min=1e-300), label="to control t")
        top.legend()
        top.set_ylabel("sensitivity")
        bottom.semilogy(self.growth.clamp(min=1e-300), color="C2")
        bottom.set_ylabel("growth in step t")
        bottom.set_xlabel("step")
        for event in self.events:
            for axes in (top, bottom):
                axes.axvline(event.step, color="0.7", linewidth=0.6, zorder=0)
        return figure

    def page(self, title: str = "Smoothness of a rollout") -> Report:
        """Make an HTML page of advice, plots and switches."""
        page = Report(title, f"{len(self.growth)} steps, {len(self.events)} switches")
        for line in [*self.advice, *self.zeros]:
            page.text(line)
        curves = {"to state t": self.sensitivity[:-1]} | (
            {"to control t": self.control} if self.control.numel() else {}
        )
        page.plot(curves, title="Sensitivity of the final state", x_label="step", log_y=True)
        page.plot({"growth": self.growth}, title="Growth in each step", x_label="step", log_y=True)
        page.figure(self.figure(), "Switches are grey lines")
        if self.events:
            page.table([{"step": e.step, "kind": e.kind, "what": e.what} for e in self.events], caption="Switches")
        return page


def diagnose(
    world: World,
    states: Tensor,
    controls: Tensor | None = None,
    params: Params = None,
    sample: int = 0,
    slip_speed: float = 1e-3,
    limit_margin: float = 1e-3,
) -> Smoothness:
    """Report how smooth a rollout is, and what to change if its gradients are of no use.

    Args:
        world: World in which the rollout was made.
        states: States of the rollout, (T + 1, nx), or (T + 1, B, nx), of which one sample is examined.
        controls: Controls of the rollout, (T, nu) or (T, B, nu); default: zero.
        params: Parameters of the rollout.
        sample: Index of the sample that is examined.
        slip_speed: Speed below which a contact sticks [m/s].
        limit_margin: Distance from its limit within which a joint has reached it [rad or m].
    """
    if states.dim() not in (2, 3) or states.shape[-1] != world.nx or len(states) < 2:
        raise ValueError(
            f"states have shape {tuple(states.shape)}; expected those of a rollout, (T + 1, {world.nx}) or (T + 1, B, {world.nx})"
        )
    x = (states if states.dim() == 2 else states[:, sample]).detach().double()
    u = torch.zeros(len(x) - 1, world.nu, dtype=x.dtype) if controls is None else controls.detach().double()
    u = u if u.dim() == 2 else u[:, sample]
    A, B = world.linearize(x[:-1], u, params)
    chain = [torch.eye(world.ndx, dtype=x.dtype)]
    for t in reversed(range(len(A))):
        chain.append(chain[-1] @ A[t])
    to_final = torch.stack(chain[::-1])  # (T + 1, ndx, ndx)
    by_control = to_final[1:] @ B
    norm = lambda M: torch.linalg.matrix_norm(M, 2) if M.numel() else torch.zeros(0)  # noqa: E731
    events = sorted([*_contact_events(world, x, u, params, slip_speed), *_limit_events(world, x, limit_margin),
                     *_saturation(world, B)], key=lambda e: e.step)  # fmt: skip
    zeros = _zeros(world, x, u, params, by_control, B)
    found = Smoothness(events, norm(to_final), norm(A), norm(by_control), zeros, [])
    found.advice.extend(_advice(world, found))
    return found


def _contact_events(world: World, x: Tensor, u: Tensor, params: Params, slip_speed: float) -> list[Event]:
    if not world.setup.scene.pairs or not world.setup.contact.acts:
        return []
    contacts = world.contacts(x[:-1], u, params)
    touching = contacts.forces > TOUCH
    slips = touching & (_slip(world.setup)(state=x[1:]).speeds > slip_speed)
    events = []
    for k, (a, b) in enumerate(contacts.shapes):
        for now, yes, no in ((touching[:, k], "touches", "leaves"), (slips[:, k], "slips", "sticks")):
            for t in (now[1:] != now[:-1]).nonzero().flatten().tolist():
                if yes == "slips" and not bool(touching[t, k] & touching[t + 1, k]):
                    continue  # a contact that begins or ends is no change between sticking and slipping
                kind = yes if bool(now[t + 1]) else no
                words = {"touches": "touches", "leaves": "leaves", "slips": "slips on", "sticks": "sticks to"}[kind]
                events.append(Event(t + 1, kind, f"{a} {words} {b}"))
    return list(dict.fromkeys(events))


def _slip(setup: Setup) -> Kernel:
    """Build the kernel that gives the sliding speeds [m/s] of all contact points at a state."""
    s = Symbols(setup)
    bodies = body_poses(s.tree, s.q)
    speeds = []
    for t in s.contacts():
        v = relative_jacobian(s, bodies, t) @ s.v
        along = v - t.geometry.normal * ca.dot(t.geometry.normal, v)
        speeds.append(ca.sqrt(ca.sumsqr(along) + 1e-300))
    b = ProgramBuilder("audit.slip")
    x = b.input("state", setup.nx)
    still = [b.zeros(setup.nu), *(b.constant(setup.default(p)) for p in setup.parameters)]
    b.output("speeds", s.call(b, "speeds", [ca.vertcat(*speeds)], [x, *still])[0])
    return b.kernel()


def _limit_events(world: World, x: Tensor, margin: float) -> list[Event]:
    model = world.setup.scene.model
    events = []
    for j, iq in zip(model.joints, model.q_index, strict=True):
        if j.nv != 1:
            continue
        q = x[:, iq]
        at = (q < float(j.lower[0]) + margin) | (q > float(j.upper[0]) - margin)
        begins = at & ~torch.cat([at.new_zeros(1), at[:-1]])
        events += [Event(t, "limit", f"{j.name} reaches its limit") for t in begins.nonzero().flatten().tolist()]
    return events


def _saturation(world: World, B: Tensor) -> list[Event]:
    """Find the steps from which on a control has no effect."""
    events = []
    for k, joint in enumerate(world.actuated):
        dead = (B[..., k] == 0).all(-1)
        begins = dead & ~torch.cat([dead.new_zeros(1), dead[:-1]])
        events += [
            Event(t, "saturated", f"the actuator of {joint} saturates") for t in begins.nonzero().flatten().tolist()
        ]
    return events


def _zeros(world: World, x: Tensor, u: Tensor, params: Params, by_control: Tensor, B: Tensor) -> list[str]:
    """Describe controls without any effect, and bodies that no control reaches."""
    found = [
        f"the gradient of the control of {joint} is exactly zero in all steps: {CLAMPED}"
        for k, joint in enumerate(world.actuated)
        if not bool(B[..., k].any())
    ]
    if not world.nu or not world.setup.contact.hard or not world.setup.scene.pairs:
        return found
    owners = dict.fromkeys(j.name.split("/")[0] for j in world.setup.scene.model.joints if j.nv)
    driven = {joint.split("/")[0] for joint in world.actuated}
    gaps = world.gaps(x, params)
    touches = world.contacts(x[:1], u[:1], params)
    for owner in owners:
        own = world.coordinates(owner)[1]
        rows = slice(own.start - world.nq, own.stop - world.nq)
        final = torch.cat([by_control[:, rows], by_control[:, world.nv :][:, rows]], 1)
        if bool(final.any()):
            continue
        pairs = [{link.split("/")[0] for link in pair} for pair in touches.pairs]
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


def _advice(world: World, found: Smoothness) -> list[str]:
    largest, first = float(found.sensitivity.max()), float(found.sensitivity[0])
    words = []
    if largest > EXPLODES:
        words.append(_explodes(found))
    if first < VANISHES:
        words.append(_vanishes(found))
    switches, steps = sum(e.kind in ("touches", "leaves", "slips", "sticks") for e in found.events), len(found.growth)
    if switches > max(4, steps // 10) and world.setup.contact.hard:
        words.append(
            f"{switches} switches of contact in {steps} steps: gradients of hard contact hold on one branch only. Use "
            "cs.Compliant() or cs.Newton() while optimising, or average over disturbed starts."
        )
    return words or ["Nothing stands out: gradients neither explode nor vanish, and switches are few."]


def _explodes(found: Smoothness) -> str:
    start, t = int(found.sensitivity.argmax()), int(found.growth.argmax())
    rate, largest = found.rate(start), float(found.sensitivity[start])
    near = [e.what for e in found.events if abs(e.step - t) <= 1]
    cause = f" ({'; '.join(near)})" if near else ""
    horizon = max(int(log(USEFUL) / log(rate)), 1)
    return (
        f"The gradient explodes: the final state changes {largest:.2g} times as much as state {start}, a factor of {rate:.3g} per "
        f"step; most in step {t}{cause}. Use a horizon of at most {horizon} steps, which keeps it below {USEFUL:.0e}, or multiple "
        "shooting (cs.optimise.ilqr), feedback in the loop, or softer contact."
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
