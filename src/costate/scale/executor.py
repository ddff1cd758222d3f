"""Executors: a deterministic map over numbered shards.

A shard is computed by a `Work`, which every worker makes once and keeps, from the same message. A shard's result depends on the
messages alone, never on who computes it or when; results come in the order of the shards. So a sum over them has the same bits in
this process, in many, and on many machines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import TracebackType
from typing import Self

from costate.scale.message import Message


class Work(ABC):
    """Something that computes shards; a worker keeps it, with all that it has compiled, from one map to the next."""

    @abstractmethod
    def __init__(self, given: Message): ...

    def begin(self, shared: Message) -> None:  # noqa: B027  (nothing to do by default)
        """Take what all shards of a map share, such as weights."""

    @abstractmethod
    def shard(self, shard: Message) -> Message:
        """Compute one shard."""


def work_of(given: Message) -> Work:
    """Make the work that a message names: "module:class" under "work"."""
    module, _, name = given.note["work"].partition(":")
    return getattr(import_module(module), name)(given)


class Executor(ABC):
    """Something that computes shards; a context manager."""

    @abstractmethod
    def map(self, shards: Sequence[Message], shared: Message | None = None) -> Iterator[Message]:
        """Compute shards; yield their results in the order of the shards."""

    def status(self) -> str:
        """Return a line about the workers; nothing to say if there are none."""
        return ""

    def close(self) -> None:  # noqa: B027  (nothing to do by default)
        """End all workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class InProcess(Executor):
    """An executor that computes all shards here, one after the other."""

    def __init__(self, work: Work | Message):
        self.work = work_of(work) if isinstance(work, Message) else work

    def map(self, shards: Sequence[Message], shared: Message | None = None) -> Iterator[Message]:
        if shared is not None:
            self.work.begin(shared)
        for shard in shards:
            yield self.work.shard(shard)
