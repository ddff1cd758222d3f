"""The report on a rollout: its switches, the growth of gradients along it, and the causes of gradients that are of no use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from costate.report import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Event:
    """Something that happens between two states."""

    step: int
    kind: str
    """Kind of the event: touches | leaves | slips | sticks | limit | saturated."""
    what: str


@dataclass(frozen=True)
class Cause:
    """Something that spoils gradients, and what to do about it."""

    kind: str
    """Kind of the cause: a key of CAUSES (causes.py)."""
    step: int
    """Step at which it is worst."""
    what: str
    unstable: tuple[int, ...] = ()
    """Steps in which it makes a disturbance grow all by itself."""


@dataclass(frozen=True)
class Smoothness:
    """The obstacles between the controls and a useful gradient."""

    events: list[Event]
    sensitivity: Tensor
    """Largest singular value of d x_T / d x_t in the tangent space, (T + 1,); at most 1e300."""
    growth: Tensor
    """Largest singular value of d x_{t+1} / d x_t, (T,)."""
    stretch: Tensor
    """Growth in each step of the disturbance that the final state feels most, (T,): that of the state with the largest sensitivity.
    1 before that state."""
    control: Tensor
    """Largest singular value of d x_T / d u_t, (T,)."""
    zeros: list[str]
    """Gradients that are exactly zero, and what to choose instead."""
    causes: list[Cause]
    residual: Tensor
    """Residual of the solver of contact in each step, (T,), as `Contacts.residual` has it; empty without contact."""
    advice: list[str]
    """Findings in words, causes included, with what to do; a single line that says so if there are none."""

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
        if self.residual.numel():
            worst = int(self.residual.argmax())
            lines.append(f"largest residual of contact in a step {float(self.residual[worst]):.2g}, at step {worst}")
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
        if self.residual.numel():
            left = {"residual": self.residual.clamp(min=1e-16)}
            page.plot(left, title="Residual of contact in each step", x_label="step", log_y=True)
        page.figure(self.figure(), "Switches are grey lines")
        if self.events:
            page.table([{"step": e.step, "kind": e.kind, "what": e.what} for e in self.events], caption="Switches")
        return page
