"""Soft actor-critic (SAC; Haarnoja et al., 2018), plain, or with one of two uses of the simulator's gradients (Qiao et al., 2021).

An iteration:

    window     B robots go on for H steps from where they are, with noise; the steps go into a memory
    critics    two of them fit  r + discount * (lower value by their slow copies - temperature * log pi)  of samples
    actor      maximise  lower value - temperature * log pi  of the action it would take
    temperature   rises while the entropy is below its target, and falls above it

`enhancement` may be

    policy     the actor climbs the gradient that the simulator gives for the sample, instead of that of a critic:
               dr/da + discount * J^T dV/ds'  with J = ds'/da of the compiled step, V = lower value - temperature * log pi
    sample     a sample also stands for actions nearby: s' + J da and r + dr/da da, with all rows of J (memory.py)
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from costate.train.plan import Iteration
from costate.train.reinforce.actor import FLOAT, perceptron
from costate.train.reinforce.memory import Memory, Outcomes, Samples
from costate.train.reinforce.sapo import Temperature
from costate.train.reinforce.windowed import Rolled, WindowOptions, WindowTraining
from costate.train.run import Checkpoint
from costate.train.streams import generator
from costate.train.trainer import Iterated

Enhancement = Literal["none", "policy", "sample"]
"""Uses of the simulator's gradients."""
VALUES = "value0", "value1"
"""Names of the critics."""


@dataclass(frozen=True)
class SacOptions(WindowOptions):
    """Options of SAC."""

    algorithm: ClassVar[str] = "sac"
    trainer: ClassVar[Any] = "costate.train.reinforce.sac:Sac"
    sees_spread: ClassVar[bool] = True

    learning_rate: float = 1e-3
    """Learning rate of actor, critics and temperature at the start; it falls along a line to nearly zero."""
    horizon: int = 8
    """Control steps of a window."""
    updates: int = 32
    """Updates after a window."""
    minibatch: int = 256
    """Samples of an update."""
    memory: int = 100_000
    """Most samples that are kept."""
    critic: tuple[int, ...] = (128, 128)
    """Units of the hidden layers of each critic."""
    target_memory: float = 0.995
    """Part of the slow critics that stays after an update."""
    entropy: float = -0.5
    """Target of the entropy of the actions, per action."""
    temperature: float = 0.1
    """Weight of the entropy at the start."""
    enhancement: Enhancement = "none"
    """Use of the simulator's gradients: for the policy, for samples nearby, or none."""
    extra: int = 9
    """Samples nearby for every sample that was simulated, with the enhancement "sample"."""
    displacement: float = 0.01
    """Largest difference of their actions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least("horizon", "updates", "minibatch", "memory", "extra")
        self.parts("target_memory")
        self.positive("temperature", "displacement")
        if self.enhancement not in get_args(Enhancement):
            raise ValueError(f"enhancement is {self.enhancement!r}; expected one of {', '.join(get_args(Enhancement))}")


class Sac(WindowTraining):
    """A training by SAC."""

    def set_up(self, point: Checkpoint) -> None:
        o, (_, m, n) = self.options, self.task.size
        self.memory = Memory(o.memory, (n, m, n, 1, 1, (n + 1) * m if o.enhancement != "none" else 0), FLOAT)
        self.outcomes = Outcomes(self.task)
        super().set_up(point)
        for adam in self.adams.values():
            adam.param_groups[0]["betas"] = (0.9, 0.999)

    def begin(self, random: torch.Generator) -> None:
        _, m, n = self.task.size
        made: dict[str, nn.Module] = {name: perceptron(n + m, self.options.critic, 1, random) for name in VALUES}
        self.slow = {name: copy.deepcopy(module).requires_grad_(False) for name, module in made.items()}
        self.learnt |= made | {"temperature": Temperature(self.options.temperature)}

    @property
    def horizon(self) -> int:
        return self.options.horizon

    # --- an iteration ---------------------------------------------------------------------------------------------

    def iterate(self, plan: Iteration) -> Iterated:
        o, random = self.options, generator("episodes", self.options.seed, plan.number)
        with torch.no_grad():
            rolled = self.roll(random)
        self.memory.add(self.sampled(rolled))
        self.policy.learn_scale(rolled.window.seen.flatten(0, 1))
        self._count(rolled.window)
        self.carry = rolled.window.carry
        self.control_steps += o.batch * o.horizon
        for adam in self.adams.values():
            adam.param_groups[0]["lr"] = plan.learning_rate
        for _ in range(o.updates):
            terms = self.update(self.drawn(random), random)
        norm = terms.pop("norm")
        return Iterated({name: float(value) for name, value in terms.items()}, float(norm), self._measures)

    def sampled(self, rolled: Rolled) -> Samples:
        """Return the steps of a window as samples, but for those that are not finite."""
        w, (nx, m, _) = rolled.window, self.task.size
        assert w.states is not None
        action, _ = self.policy.act(w.heads, rolled.noise)
        state, _, age, values = w.states.split([nx, m, 1, self.loop.varied], -1)
        slope = w.seen.new_zeros(*w.seen.shape[:2], 0)
        if self.options.enhancement != "none":
            slope = self.outcomes.slope(state, action, (age + 1) / self.task.length, values).flatten(2)
        parts = w.seen, action, w.after, w.reward[..., None], 1.0 - w.fell[..., None].to(FLOAT), slope
        samples = [part.detach().flatten(0, 1) for part in parts]
        good = torch.cat(samples, 1).isfinite().all(1)
        self.dropped += (~good).sum()
        return Samples(*(part[good] for part in samples))

    def drawn(self, random: torch.Generator) -> Samples:
        """Return samples to learn from; with the enhancement "sample" most of them moved to actions nearby."""
        o, samples = self.options, self.memory.draw(self.options.minibatch, random)
        if o.enhancement != "sample":
            return samples
        by = o.displacement * (2 * torch.rand(samples.action.shape, generator=random, dtype=FLOAT) - 1)
        by *= torch.rand(len(by), 1, generator=random) < o.extra / (1 + o.extra)
        return samples.displaced((samples.action + by).clamp(-1, 1) - samples.action)

    def update(self, samples: Samples, random: torch.Generator) -> dict[str, Tensor]:
        """Learn from samples; return terms for the metrics."""
        o, policy = self.options, self.policy
        noise = torch.randn(2, *samples.action.shape, generator=random, dtype=FLOAT)
        value, ahead = self._valued(samples, noise[0])
        wanted = samples.reward + o.discount * samples.goes_on * value
        critic = self._fit(self._scaled(samples.seen), samples.action, wanted)
        heads = policy.net(self._scaled(samples.seen))
        action, log_density = self._act(heads, noise[1])
        if o.enhancement == "policy":
            gain = (ahead * action).sum(1, keepdim=True)
        else:
            gain = self._lower(self.learnt, self._scaled(samples.seen), action)
        loss = (self.temperature * log_density - gain).mean()
        norm = self._step(("policy",), loss)
        entropy = -log_density.detach().mean()
        logarithm: Any = self.learnt["temperature"].log
        self._step(("temperature",), (logarithm * (entropy - o.entropy * policy.outputs)).sum())
        terms = {"loss": loss.detach(), "critic": critic, "entropy": entropy, "temperature": self.temperature}
        return terms | {"norm": norm, "noise": policy.spread(heads).mean()}

    # --- parts ----------------------------------------------------------------------------------------------------

    @property
    def temperature(self) -> Tensor:
        """Weight of the entropy."""
        logarithm: Any = self.learnt["temperature"].log
        return logarithm.detach().exp()

    def _scaled(self, seen: Tensor) -> Tensor:
        return (seen - self.policy.mean) * self.policy.scale

    def _act(self, heads: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        action, density = self.policy.act(heads, noise)
        return action, density[:, None]

    def value(self, seen: Tensor, noise: Tensor) -> Tensor:
        """Return the value of observations (N, n) by the slow critics, (N, 1): lower value - temperature * log pi."""
        scaled = self._scaled(seen)
        action, log_density = self._act(self.policy.net(scaled), noise)
        return self._lower(self.slow, scaled, action) - self.temperature * log_density

    def _valued(self, samples: Samples, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values after the steps (N, 1), and the gradients of reward and discounted value in the actions (N, m)."""
        if self.options.enhancement != "policy":
            with torch.no_grad():
                return self.value(samples.after, noise), torch.zeros_like(noise)
        after = samples.after.clone().requires_grad_()
        value = self.value(after, noise)
        (ahead,) = torch.autograd.grad(value.sum(), after)
        ahead = self.options.discount * samples.goes_on * ahead
        return value.detach(), samples.reward_slope + torch.einsum("bij,bi->bj", samples.J, ahead)

    def _lower(self, modules: Mapping[str, nn.Module], scaled: Tensor, action: Tensor) -> Tensor:
        both = torch.cat([scaled, action], 1)
        return torch.minimum(*(modules[name](both) for name in VALUES))

    def _fit(self, scaled: Tensor, action: Tensor, wanted: Tensor) -> Tensor:
        """Fit both critics; then let their slow copies follow. Return the loss."""
        both = torch.cat([scaled, action], 1)
        loss = torch.stack([mse_loss(self.learnt[name](both), wanted) for name in VALUES]).sum()
        self._step(VALUES, loss)
        for name in VALUES:
            for slow, fast in zip(self.slow[name].parameters(), self.learnt[name].parameters(), strict=True):
                slow.lerp_(fast.detach(), 1 - self.options.target_memory)
        return loss.detach() / 2

    def _step(self, names: tuple[str, ...], loss: Tensor) -> Tensor:
        """Do a step of Adam for some of what is learnt; return the length of the gradient."""
        parameters = [p for name in names for p in self.learnt[name].parameters()]
        gradients = torch.autograd.grad(loss, parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        norm = nn.utils.clip_grad_norm_(parameters, self.options.clip)
        for name in names:
            self.adams[name].step()
        return norm

    # --- keeping --------------------------------------------------------------------------------------------------

    def kept(self) -> dict[str, Any]:
        kept = super().kept()
        kept["more"] |= {"memory": self.memory.rows[: len(self.memory)], "added": self.memory.count}
        for name, module in self.slow.items():
            kept["more"] |= {f"slow.{name}.{key}": t for key, t in module.state_dict().items()}
        return kept

    def _restore(self, more: dict[str, Tensor]) -> None:
        super()._restore(more)
        rows = more["memory"]
        self.memory.rows[: len(rows)] = rows
        self.memory.count = more["added"].clone()
        for name, module in self.slow.items():
            module.load_state_dict({key: more[f"slow.{name}.{key}"] for key in module.state_dict()})
