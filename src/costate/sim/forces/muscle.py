"""Muscles as MuJoCo models them: force by length and velocity, and the activation that follows a control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.core.constants import Constants

TINY = 1e-15


@dataclass(frozen=True)
class Muscle(Constants):
    """A muscle whose force is -peak * (active(length) * speed(velocity) * activation + passive(length)); lengths are relative to
    the one at which it is strongest."""

    range: tuple[float, float] = (0.75, 1.05)
    """Relative lengths at the ends of the range of its length."""
    force: float = -1.0
    """Peak force [N]; negative: scale / ease."""
    scale: float = 200.0
    shortest: float = 0.5
    longest: float = 1.6
    """Relative lengths beyond which it has no active force."""
    speed: float = 1.5
    """Shortening velocity without force [relative lengths per second]."""
    passive: float = 1.3
    """Passive force at `longest`, relative to the peak force."""
    lengthening: float = 1.2
    """Active force at the fastest lengthening, relative to the peak force."""

    lengths: tuple[float, float] = (0.0, 1.0)
    """Range of the length of what it acts along [m]."""
    ease: float = 1.0
    """Size of the acceleration by a unit force, by which `scale` is divided."""

    @staticmethod
    def of(numbers: Sequence[float], lengths: tuple[float, float], ease: float) -> Muscle:
        """Return a muscle from MJCF's gainprm or biasprm."""
        low, high, *rest = numbers[:9]
        return Muscle((low, high), *rest, lengths=lengths, ease=ease)

    @property
    def peak(self) -> float:
        """Peak force [N]."""
        return self.force if self.force >= 0 else self.scale / max(TINY, self.ease)

    @property
    def optimum(self) -> float:
        """Length at which it is strongest [m]."""
        return (self.lengths[1] - self.lengths[0]) / max(TINY, self.range[1] - self.range[0])

    def gain(self, x: SX, rate: SX) -> SX:
        """Return the force per unit of activation."""
        speed = rate / max(TINY, self.optimum * self.speed)
        return -self.peak * self._active(self._relative(x)) * self._by_speed(speed)

    def bias(self, x: SX) -> SX:
        """Return the passive force."""
        r = self._relative(x)
        end = (1 + self.longest) / 2
        width = max(TINY, end - 1)
        bent, straight = (r - 1) / width, (r - end) / width
        value = ca.if_else(r <= 1, 0, ca.if_else(r <= end, bent**2 / 2, straight + 0.5))
        return -self.peak * self.passive * value

    def _relative(self, x: SX) -> SX:
        return self.range[0] + (x - self.lengths[0]) / max(TINY, self.optimum)

    def _active(self, r: SX) -> SX:
        low, high = self.shortest, self.longest
        a, b = (low + 1) / 2, (1 + high) / 2
        rises, tops = (r - low) / max(TINY, a - low), (1 - r) / max(TINY, 1 - a)
        bends, falls = (r - 1) / max(TINY, b - 1), (high - r) / max(TINY, high - b)
        upper = ca.if_else(r <= b, 1 - bends**2 / 2, falls**2 / 2)
        inner = ca.if_else(r <= a, rises**2 / 2, ca.if_else(r <= 1, 1 - tops**2 / 2, upper))
        return ca.if_else(ca.logic_and(r >= low, r <= high), inner, 0)

    def _by_speed(self, w: SX) -> SX:
        y = self.lengthening - 1
        lengthens = self.lengthening - (y - w) ** 2 / max(TINY, y)
        slow = ca.if_else(w <= 0, (w + 1) ** 2, ca.if_else(w <= y, lengthens, self.lengthening))
        return ca.if_else(w <= -1, 0, slow)


def excitation_rate(u: SX, act: SX, rises: float, falls: float, smooth: float) -> SX:
    """Return d act / dt under a control: slower to rise from a high activation, and to fall from a low one (Millard et al., 2013).

    rises, falls: time constants [s]; smooth: range of u - act over which one turns into the other; 0: it switches.
    """
    wanted, level = (ca.fmin(ca.fmax(x, 0), 1) for x in (u, act))
    gap = wanted - act
    up, down = rises * (0.5 + 1.5 * level), falls / (0.5 + 1.5 * level)
    if not isinstance(smooth, SX) and smooth < TINY:
        time = ca.if_else(gap > 0, up, down)
    else:
        x = ca.fmin(ca.fmax(gap / smooth + 0.5, 0), 1)
        time = down + (up - down) * x**3 * (3 * x * (2 * x - 5) + 10)
    return gap / ca.fmax(time, TINY)
