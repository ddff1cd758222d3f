"""Windows: some steps of many robots with the policy inside; actor, world, observation and reward in one kernel.

In every step of a window the actor sees an observation, its network gives a head, and

    action = tanh(mean + standard deviation * noise).

The head is the mean alone, where the noise comes scaled, or the mean and what gives the standard deviation (actor.py). The world
moves, and a robot whose episode has ended begins a fresh one.

`push` is added to the heads. It is zero; the gradient with respect to it is that with respect to the heads, through everything
that follows. With it, one backward pass of torch over all observations together gives the gradient of the weights (shac.py).

The gradient with respect to a state longer than `clip` is shortened, robot by robot and step by step, and one that is not finite is
dropped: a robot that tumbles does not decide for all. `probe` is zero, too: its gradient is the length of that of the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import torch
from casadi import SX
from torch import Tensor, nn

from costate.core.fork import cached_property
from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.program import DYNAMIC, Program, Var
from costate.train.network.in_kernel import stages_of
from costate.train.reinforce.actor import LEAST, MOST
from costate.train.reinforce.rewarded import RewardedTask


@dataclass(frozen=True)
class Window:
    """The course of H steps of B robots."""

    seen: Tensor
    """Observations that the actor acted on, (B, H, n)."""
    heads: Tensor
    """Heads of the actor's network, (B, H, k)."""
    after: Tensor
    """Observations after each step, before a fresh episode begins, (B, H, n)."""
    reward: Tensor
    """Rewards, (B, H)."""
    fell: Tensor
    """True where an episode ended, and nothing comes after, (B, H)."""
    over: Tensor
    """True where an episode was cut off since it has lasted its time, (B, H)."""
    carry: Tensor
    """State, last action, age of the episode and varied parameters of every robot after the window, (B, nx + m + 1 + p)."""
    states: Tensor | None = None
    """The same before each step, (B, H, nx + m + 1 + p)."""

    @property
    def ended(self) -> Tensor:
        """True where an episode ended, (B, H)."""
        return self.fell | self.over


class ClosedLoop:
    """Windows of a task under an actor: a chain of layers from normalised observations to heads."""

    def __init__(self, task: RewardedTask, actor: nn.Module):
        self.task, self.stages = task, stages_of(actor)

    def begin(self, batch: int, generator: torch.Generator) -> Tensor:
        """Return robots at the beginning of their episodes, (batch, nx + m + 1 + p); of random ages, if the task is `staggered`."""
        nx, m, _ = self.task.size
        fresh = self.task.fresh(batch, generator)
        age = torch.randint(self.task.length, (batch, 1), generator=generator) * self.task.staggered
        return torch.cat([fresh[:, :nx], fresh.new_zeros(batch, m), age, fresh[:, nx:]], 1)

    @cached_property
    def varied(self) -> int:
        """Number of parameters of the world that differ from episode to episode: p."""
        return sum(self.task.varied_sizes.values())

    @cached_property
    def heads(self) -> int:
        """Number of heads."""
        return [w for stage in self.stages for w in stage.weights.values()][-1].numel()

    def __call__(
        self,
        carry: Tensor,
        noise: Tensor,
        fresh: Tensor,
        scaling: tuple[Tensor, Tensor],
        clip: float = 1e30,
        push: Tensor | None = None,
        probe: Tensor | None = None,
    ) -> Window:
        """Run a window, as long as there is noise. Differentiable in push and probe.

        Args:
            carry: State, last action, age and varied parameters of every robot, (B, nx + m + 1 + p).
            noise: Noise of the actions, (B, H, m).
            fresh: States that episodes begin with where others end, and their parameters, (B, H, nx + p): see `task.fresh`.
            scaling: Middle of the observations, and factor of what one differs from it, (n,) each.
            clip: Longest gradient of a robot's state.
            push: Zeros, (B, H, k), for the gradient with respect to the heads.
            probe: Zeros, (B, H, 1), for the lengths of the gradients of the states.
        """
        weights = {name: t.to(carry.dtype) for stage in self.stages for name, t in stage.weights.items()}
        told = {"middle": scaling[0], "scale": scaling[1], "clip": carry.new_tensor([clip])}
        told["push"] = noise.new_zeros(*noise.shape[:-1], self.heads) if push is None else push
        told["probe"] = noise.new_zeros(*noise.shape[:-1], 1) if probe is None else probe
        out = self.kernel.sized(noise.shape[1])(carry=carry, noise=noise, fresh=fresh, **told, **weights)
        reward, fell, over = out.told.unbind(-1)
        states = out.states.detach()
        fell, over = fell.detach() > 0, over.detach() > 0
        if not self.task.stationary:  # it knows its time: the last step is the end
            fell, over = fell | over, torch.zeros_like(over)
        return Window(out.seen.detach(), out.heads, out.after, reward, fell, over, states[:, -1], states[:, :-1])

    @cached_property
    def kernel(self) -> Kernel:
        """Kernel of a window of any length."""
        nx, m, n = self.task.size
        b = ProgramBuilder(f"window.{self.task.name}")
        whole = nx + m + 1 + self.varied
        carry = b.input("carry", whole)
        sizes = {"noise": m, "fresh": nx + self.varied, "push": self.heads, "probe": 1}
        sequences = [b.input(name, (DYNAMIC, size)) for name, size in sizes.items()]
        shared = [b.input("middle", n), b.input("scale", n), b.input("clip", 1)]
        for stage in self.stages:
            shared += stage.inputs(b)
        body = self._step([whole, *sizes.values(), *(s.size for s in shared)])
        _, found, (states,) = b.scan(body, DYNAMIC, carry, sequences, shared, keep=True)
        names = ("seen", "heads", "after", "told", *(f"substeps{k}" for k in range(len(found) - 4)))
        for name, value in zip(names, found, strict=True):  # the backward pass reads what substeps begin with
            b.output(name, value, (DYNAMIC, value.size // DYNAMIC))
        b.output("states", states, (DYNAMIC + 1, whole))
        return b.kernel()

    def _step(self, sizes: Sequence[int]) -> Program:
        """Return the program of a step, (carry, sequences, shared) -> (carry, seen, heads, after, told, substeps)."""
        e = self.task
        nx, m, _ = e.size
        b = ProgramBuilder("window.step")
        carry, noise, fresh, push, probe, middle, scale, clip, *weights = b.inputs(*sizes)
        x, last, age = b.slice(carry, 0, nx), b.slice(carry, nx, m), b.slice(carry, nx + m, 1)
        now, then = b.trace(lambda age: (age / e.length, (age + 1) / e.length), age)
        seen = b.trace(e.observation_of, x, last, now)
        head = b.trace(lambda o, middle, scale: (o - middle) * scale, seen, middle, scale)
        for stage in self.stages:
            count = len(stage.weights)
            head, weights = stage.add(b, head, weights[:count]), weights[count:]
        head = b.add(head, push)
        action = b.trace(_squashed, head, noise)
        values = [_kept(b, b.slice(carry, nx + m + 1, self.varied))] if self.varied else []
        moved, *substeps = b.call(e.motion, x, action, *values)
        (after,) = b.custom(lambda x, clip, probe: x, moved, clip, probe, adjoint=_shortened(nx))
        told = b.trace(e.taught, x, action, after, then)
        next_, *told = b.trace(self._ended, after, action, fresh, age, b.finite(after), *told, *values)
        return b.program(next_, seen, head, *told, *substeps)

    def _ended(self, x: SX, a: SX, fresh: SX, age: SX, finite: SX, seen: SX, reward: SX, margin: SX, *values: SX):
        """Return the next carry, the observation, and (reward, fell, over)."""
        nx = self.task.size[0]
        fell = ca.if_else(finite, margin < 0, 1)
        over = ca.logic_and(age + 1 >= self.task.length, ca.logic_not(fell))
        ends = ca.logic_or(fell, over)
        carry = [ca.if_else(ends, fresh[:nx], x), ca.if_else(ends, 0, a), ca.if_else(ends, 0, age + 1)]
        carry = ca.vertcat(*carry, *(ca.if_else(ends, fresh[nx:], v) for v in values))
        return carry, ca.if_else(finite, seen, 0), ca.vertcat(ca.if_else(finite, reward, 0), fell, over)


def _kept(b: ProgramBuilder, values: Var) -> Var:
    """Return values whose gradient is not asked for."""
    return b.custom(lambda v: v, values, adjoint=lambda v, same, seed: SX.zeros(v.numel()))[0]


def _squashed(head: SX, noise: SX) -> SX:
    m = noise.numel()
    if head.numel() == m:
        return ca.tanh(head + noise)
    return ca.tanh(head[:m] + ca.exp(LEAST + (MOST - LEAST) / 2 * (1 + ca.tanh(head[m:]))) * noise)


def _shortened(n: int) -> Program:
    """Return the adjoint of a state that passes: (x, clip, probe, y, gradient) -> (gradient, not too long, 0, its length)."""
    b = ProgramBuilder("shortened")
    _, clip, _, _, gradient = b.inputs(n, 1, 1, n, n)

    def short(g: SX, clip: SX, finite: SX) -> tuple[SX, SX]:
        length = ca.norm_2(g)
        return ca.if_else(finite, g * ca.fmin(1, clip / ca.fmax(length, 1e-30)), 0), length

    passed, length = b.trace(short, gradient, clip, b.finite(gradient))
    return b.program(passed, b.zeros(1), length)
