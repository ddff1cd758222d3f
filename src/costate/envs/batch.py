"""Episodes of a task side by side, one step at a time: what all environments are made of. Differentiable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from costate.sim import World
from costate.train.episode import Episodes, Trajectory
from costate.train.trainable import Trainable


class Outcome(NamedTuple):
    """The result of a step."""

    observation: Tensor
    """Observations that the policy sees next, (B, n); of episodes that are over, those it would see."""
    reward: Tensor
    """Rewards of the step, (B,)."""
    terminated: Tensor
    """True where the task has ended an episode, bool (B,)."""
    truncated: Tensor
    """True where only the time is up, bool (B,)."""

    @property
    def over(self) -> Tensor:
        """True for episodes that are over, bool (B,)."""
        return self.terminated | self.truncated


class Batch:
    """B episodes side by side. They may begin at different times: `reset(mask)` begins some of them anew.

    states = Batch(task, 64); observation = states.reset()
    outcome = states.step(policy(observation))           # gradients flow through steps, rewards and observations
    """

    def __init__(self, task: Trainable, batch: int, seed: int | None = 0):
        """Prepare a batch. seed: of the random numbers; None: any."""
        self.task, self.batch, self.length = task, batch, task.steps
        self.world: World | None = None
        """World that takes the steps; None: that of the task."""
        self.generator = torch.Generator()
        self.lanes: list[torch.Generator] | None = None
        """Generator of each episode and those that follow it; None: `generator` draws all at once, which is quicker."""
        self.seed(seed)
        self.episodes: Any = None
        self.states: list[Tensor] = []
        """States, (B, nx) each; those since the oldest episode began, or the last two if the task is stationary."""
        self.actions: list[Tensor] = []
        """Actions between them, (B, m) each."""
        self.times = torch.zeros(batch, dtype=torch.long)
        """Steps that each episode has done, (B,)."""
        self._common: int | None = 0
        """Steps that all episodes have done; None: they differ."""

    def seed(self, seed: int | Sequence[int | None] | None) -> None:
        """Begin the random numbers anew: with one seed for all, any (None), or one for each episode, of which None goes on."""
        if not isinstance(seed, Sequence):
            self.lanes = None
            self.generator.seed() if seed is None else self.generator.manual_seed(seed)
            return
        if len(seed) != self.batch:
            raise ValueError(f"{len(seed)} seeds for {self.batch} episodes; expected one for each")
        if self.lanes is None:
            self.lanes = [torch.Generator() for _ in seed]
            for lane in self.lanes:
                lane.seed()
        for lane, each in zip(self.lanes, seed, strict=True):
            if each is not None:
                lane.manual_seed(each)

    def _drawn(self, which: Sequence[int]) -> Any:
        """Return new episodes in the places of these numbers."""
        if self.lanes is None:
            return self.task.draw(len(which), self.generator)
        return joined([self.task.draw(1, self.lanes[k]) for k in which])

    def reset(self, mask: Tensor | None = None) -> Tensor:
        """Begin new episodes, all or those in a mask, bool (B,); return all observations (B, n)."""
        if mask is None or self.episodes is None or bool(mask.all()):
            self.episodes = self._drawn(range(self.batch))
            self.states, self.actions = [self.episodes.state], []
            self.times, self._common = torch.zeros_like(self.times), 0
        elif bool(mask.any()):
            self.episodes = merged(self.episodes, self._drawn(mask.nonzero()[:, 0].tolist()), mask)
            self.states[-1] = torch.where(mask[:, None], self.episodes.state, self.states[-1])
            self.times = self.times * ~mask
            self._compare()
            self._forget()
        return self.observe()

    def step(self, action: Tensor, active: Tensor | None = None) -> Outcome:
        """Do a step of all episodes, or of those in a mask; the others stay where they are."""
        task, e = self.task, self.episodes
        self.actions.append(action.clamp(-1.0, 1.0))
        world = self.world or task.world
        params = {k: v for k, v in e.params.items() if k in world.setup.parameters}
        before = self._by_time(lambda idx, t, e: task.disturb(self.states[-1][idx], t, e))
        control = self._by_time(lambda idx, t, e: task.control(task.applied(_each(self._done(t), idx), e)))
        after = world.step(before, control, params)
        if active is None:
            self.states.append(after)
            self.times = self.times + 1
            self._common = None if self._common is None else self._common + 1
        else:
            self.states.append(torch.where(active[:, None], after, self.states[-1]))
            self.times = self.times + active
            self._compare()
        self._forget()
        return self._outcome(torch.ones_like(self.times, dtype=torch.bool) if active is None else active)

    def observe(self) -> Tensor:
        """Return what the policy sees now, (B, n)."""
        return self._by_time(lambda idx, t, e: self.task.see(self.states[-1][idx], t, e, self._acted(idx, t)))

    def _acted(self, idx: Any, t: Any) -> list[Tensor]:
        """Return the actions of episodes that are t steps old, zero before the first one."""
        if isinstance(t, Tensor):
            return [a * (t > 0)[:, None] for a in self.actions[-1:]]
        return _each(self.actions[len(self.actions) - t :], idx)

    def detach(self) -> None:
        """Forget where states come from: gradients of what follows end here."""
        self.states = [s.detach() for s in self.states]
        self.actions = [a.detach() for a in self.actions]

    def rewards(self, trajectory: Trajectory) -> Tensor:
        """Return the rewards of the last step of what happened, (B,)."""
        return self.task.reward(trajectory)

    def trajectory(self, idx: Any = slice(None), time: int | None = None) -> Trajectory:
        """Return what has happened in episodes that are equally far, all by default."""
        t = len(self.actions) if time is None else time
        states, actions = self.states[-t - 1 :], self.actions[len(self.actions) - t :]
        episodes = self.episodes if isinstance(idx, slice) else chosen(self.episodes, idx)
        return Trajectory(torch.stack(_each(states, idx)), torch.stack(_each(actions, idx)), episodes)

    def results(self, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return success (b,) and error (b,) of episodes that have had all their steps: all, or those in a mask."""
        idx = slice(None) if mask is None or bool(mask.all()) else mask.nonzero()[:, 0]
        verdict = self.task.judge(self.trajectory(idx, self.length))
        return verdict.success, verdict.error

    def _outcome(self, moved: Tensor) -> Outcome:
        if self.task.stationary:
            reward = self.rewards(self.trajectory(time=1))
        else:
            reward = self._by_time(lambda idx, t, e: self._earned(idx, t))
        # An episode whose state or action is not finite has no future: it ends, with a reward and an observation of zero.
        lost = ~(self.states[-1].isfinite().all(-1) & self.actions[-1].isfinite().all(-1)) & moved
        early = (self._by_time(lambda idx, t, e: self._ended(idx, t, e)) & moved) | lost
        late = (self.times >= self.length) & moved & ~early
        never = torch.zeros_like(late)
        # A task that knows how many steps there are ends with the last one: what would happen later does not count.
        ends, cut = (early, late) if self.task.stationary else (early | late, never)
        seen = self.observe()
        if bool(lost.any()):
            seen, reward = seen.masked_fill(lost[:, None], 0.0), reward.masked_fill(lost, 0.0)
        return Outcome(seen, reward * moved, ends, cut)

    def _earned(self, idx: Any, t: int) -> Tensor:
        if t == 0:
            return self.states[-1].new_zeros(len(self.states[-1][idx]))
        return self.rewards(self.trajectory(idx, t))

    def _ended(self, idx: Any, t: Any, episodes: Any) -> Tensor:
        state = self.states[-1][idx]
        over = self.task.over(state, t, episodes)
        return torch.zeros(len(state), dtype=torch.bool) if over is None else over

    def _done(self, t: Any) -> list[Tensor]:
        """Return the actions of episodes that are t steps old, the new one included."""
        return self.actions if isinstance(t, Tensor) else self.actions[len(self.actions) - t - 1 :]

    def _compare(self) -> None:
        """Note whether all episodes have done the same number of steps."""
        first = int(self.times[0])
        self._common = first if bool((self.times == first).all()) else None

    def _forget(self) -> None:
        """Drop states from before the oldest episode began."""
        oldest = int(self.times.max()) if self._common is None else self._common
        kept = 1 if self.task.stationary else oldest
        self.states = self.states[-kept - 1 :]
        self.actions = self.actions[len(self.actions) - min(kept, len(self.actions)) :]

    def _by_time(self, function: Any) -> Tensor:
        """Return what a function (indices, step, episodes) gives: all at once, or for episodes that are equally far together."""
        groups = list(self._groups())
        if len(groups) == 1:
            return function(*groups[0])
        order = torch.cat([idx for idx, _, _ in groups]).argsort()
        return torch.cat([function(*group) for group in groups])[order]

    def _groups(self) -> Iterator[tuple[Any, Any, Any]]:
        if self.task.stationary or self._common is not None:
            yield slice(None), self.times if self.task.stationary else self._common, self.episodes
            return
        for t in self.times.unique().tolist():
            idx = (self.times == t).nonzero()[:, 0]
            yield idx, t, chosen(self.episodes, idx)


def _each(tensors: list[Tensor], idx: Any) -> list[Tensor]:
    return tensors if isinstance(idx, slice) else [t[idx] for t in tensors]


def chosen(episodes: Episodes, idx: Tensor) -> Any:
    """Return some of the episodes."""
    changed = {name: value.index_select(axis, idx) for name, value, axis in _tensors(episodes)}
    return replace(episodes, **changed)


def joined(parts: Sequence[Episodes]) -> Any:
    """Return episodes one behind the other."""
    rows = zip(*(_tensors(part) for part in parts), strict=True)
    return replace(parts[0], **{row[0][0]: torch.cat([value for _, value, _ in row], row[0][2]) for row in rows})


def merged(old: Episodes, new: Episodes, mask: Tensor) -> Any:
    """Return episodes in which those of a mask are replaced by new ones."""
    idx, changed = mask.nonzero()[:, 0], {}
    for (name, value, axis), (_, fresh, _) in zip(_tensors(old), _tensors(new), strict=True):
        changed[name] = value.index_copy(axis, idx, fresh.to(value.dtype))
    return replace(old, **changed)


def _tensors(episodes: Episodes) -> Iterator[tuple[str, Tensor, int]]:
    """Yield name, tensor and axis of the batch of each field: the first, unless the field's metadata say `batch_axis`."""
    for f in fields(episodes):
        value = getattr(episodes, f.name)
        if isinstance(value, Tensor) and value.dim() > 0:
            yield f.name, value, f.metadata.get("batch_axis", 0)
