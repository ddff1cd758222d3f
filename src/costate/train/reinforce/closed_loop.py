"""Windows: some steps of many robots with the policy inside; actor, world, observation and reward in one kernel.

In every step of a window the actor sees an observation and acts with

    action = tanh(mean(observation) + offset),     offset = standard deviation * noise,

the world moves, and a robot whose episode has ended begins a fresh one. The gradient with respect to the offset of a step is that
with respect to the actor's mean, through everything that follows: with it one backward pass of torch over all observations
together gives the gradient of the weights (shac.py).

The gradient of a state longer than `clip` is shortened, robot by robot and step by step, and one that is not finite is dropped: a
robot that tumbles does not decide for all.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import torch
from casadi import SX
from torch import Tensor, nn

from costate.core.fork import cached_property
from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.program import Program
from costate.train.network.in_kernel import stages_of
from costate.train.reinforce.environment import Environment


@dataclass(frozen=True)
class Window:
    """What happened in H steps of B robots."""

    seen: Tensor
    """Observations that the actor acted on, (B, H, n)."""
    after: Tensor
    """Observations after each step, before a fresh episode begins, (B, H, n)."""
    reward: Tensor
    """Rewards, (B, H)."""
    fell: Tensor
    """True where an episode ended before its time, (B, H)."""
    over: Tensor
    """True where an episode has lasted its time, (B, H)."""
    carry: Tensor
    """State, last action and age of the episode of every robot after the window, (B, nx + m + 1)."""

    @property
    def ended(self) -> Tensor:
        """True where an episode ended, (B, H)."""
        return self.fell | self.over


class ClosedLoop:
    """Windows of an environment under an actor: a chain of layers from normalised observations to means of actions."""

    def __init__(self, environment: Environment, actor: nn.Module, horizon: int):
        self.environment, self.horizon = environment, horizon
        self.stages = stages_of(actor)

    def begin(self, batch: int, generator: torch.Generator) -> Tensor:
        """Return robots at the beginning of their episodes, (batch, nx + m + 1)."""
        state = self.environment.start(batch, generator)
        return torch.cat([state, state.new_zeros(batch, self.environment.size[1] + 1)], 1)

    def __call__(
        self, carry: Tensor, offset: Tensor, fresh: Tensor, middle: Tensor, scale: Tensor, clip: float
    ) -> Window:
        """Run a window. Differentiable in the offsets.

        Args:
            carry: State, last action and age of every robot, (B, nx + m + 1).
            offset: Noise that is added to the mean of each action, (B, H, m).
            fresh: States that episodes begin with where others end, (B, H, nx).
            middle: Middle of the observations, (n,).
            scale: Factor of what an observation differs from the middle, (n,).
            clip: Longest gradient of a robot's state.
        """
        weights = {name: t.to(carry.dtype) for stage in self.stages for name, t in stage.weights.items()}
        told = {"middle": middle, "scale": scale, "clip": carry.new_tensor([clip])}
        out = self.kernel(carry=carry, offset=offset, fresh=fresh, **told, **weights)
        reward, fell, over = out.told.unbind(-1)
        final = out.states[:, -1].detach()
        return Window(out.seen.detach(), out.after, reward, fell.detach() > 0, over.detach() > 0, final)

    @cached_property
    def kernel(self) -> Kernel:
        """Kernel of a window."""
        (nx, m, n), h = self.environment.size, self.horizon
        b = ProgramBuilder(f"window.{self.environment.name}")
        carry = b.input("carry", nx + m + 1)
        offset, fresh = b.input("offset", (h, m)), b.input("fresh", (h, nx))
        shared = [b.input("middle", n), b.input("scale", n), b.input("clip", 1)]
        for stage in self.stages:
            shared += [b.input(name, tuple(t.shape)) for name, t in stage.weights.items()]
        body = self._step([s.size for s in shared])
        _, (seen, after, told), (states,) = b.scan(body, h, carry, [offset, fresh], shared, keep=True)
        for name, value, size in (("seen", seen, n), ("after", after, n), ("told", told, 3)):
            b.output(name, value, (h, size))
        b.output("states", states, (h + 1, nx + m + 1))
        return b.kernel()

    def _step(self, shared: list[int]) -> Program:
        """Return (carry, offset, fresh, middle, scale, clip, weights) -> (carry, seen, after, (reward, fell, over))."""
        e = self.environment
        nx, m, _ = e.size
        b = ProgramBuilder("window.step")
        carry, offset, fresh, middle, scale, clip, *weights = b.inputs(nx + m + 1, m, nx, *shared)
        x, last, age = b.slice(carry, 0, nx), b.slice(carry, nx, m), b.slice(carry, nx + m, 1)
        now, then = b.trace(lambda age: (age / e.length, (age + 1) / e.length), age)
        seen = b.trace(e.observation_of, x, last, now)
        mean = b.trace(lambda o, middle, scale: (o - middle) * scale, seen, middle, scale)
        for stage in self.stages:
            count = len(stage.weights)
            mean, weights = stage.add(b, mean, weights[:count]), weights[count:]
        action = b.trace(lambda u, o: ca.tanh(u + o), mean, offset)
        (after,) = b.custom(lambda x, clip: x, *b.call(e.motion, x, action), clip, adjoint=_shortened(nx))
        told = b.trace(e.told, x, action, after, then)
        told = b.trace(self._ended, after, action, fresh, age, b.finite(after), *told)
        return b.program(told[0], seen, *told[1:])

    def _ended(self, x: SX, a: SX, fresh: SX, age: SX, finite: SX, seen: SX, reward: SX, margin: SX):
        """Return the next carry, the observation, and (reward, fell, over)."""
        fell = ca.if_else(finite, margin < 0, 1)
        over = ca.logic_and(age + 1 >= self.environment.length, ca.logic_not(fell))
        ends = ca.logic_or(fell, over)
        carry = ca.vertcat(ca.if_else(ends, fresh, x), ca.if_else(ends, 0, a), ca.if_else(ends, 0, age + 1))
        return carry, ca.if_else(finite, seen, 0), ca.vertcat(ca.if_else(finite, reward, 0), fell, over)


def _shortened(n: int) -> Program:
    """Return the adjoint of a state that passes: (x, clip, y, gradient) -> (gradient that is not too long, 0)."""
    b = ProgramBuilder("shortened")
    _, clip, _, gradient = b.inputs(n, 1, n, n)

    def short(g: SX, clip: SX, finite: SX) -> SX:
        return ca.if_else(finite, g * ca.fmin(1, clip / ca.fmax(ca.norm_2(g), 1e-30)), 0)

    return b.program(b.trace(short, gradient, clip, b.finite(gradient)), b.zeros(1))
