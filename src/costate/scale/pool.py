"""A pool: an executor with workers that may be slow, die, and come back.

A shard of a worker that is lost goes to another one, and the worker is replaced. A shard that is late goes to an idle worker as
well, and the first answer counts: nobody waits until a cluster has noticed that a machine is gone. Answers have the same bits
whoever gives them. If no worker is left for a while, this process computes itself.
"""

from __future__ import annotations

import queue
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property

from costate.kernel.machine.target import host
from costate.scale.desk import versions
from costate.scale.executor import Executor, Work, work_of
from costate.scale.message import Message

LATE, LATE_FACTOR = 5.0, 4.0
"""A shard is late after so many seconds, and so many times what shards usually take."""
ALONE = 30.0
"""Time without any worker after which this process computes itself [s]."""
NAMED = 4
"""Largest number of workers that a line about them names."""
TRIES = 3
"""Number of workers that may be lost with one shard, or before a replaced one has done anything."""


STARTING = "that was starting"


class LostError(Exception):
    """A worker that is no longer there; the text says what became of it."""


class MachineLostError(LostError):
    """A worker that went with its machine, which says nothing about the work or the place."""


class Worker(ABC):
    """One worker, as the pool sees it. Futures raise LostError if it is gone."""

    @abstractmethod
    def start(self, given: bytes) -> Future[bytes]:
        """Let it make its work; see `Desk`."""

    @abstractmethod
    def shard(self, number: int, shared: bytes | None, shard: bytes) -> Future[bytes]:
        """Let it compute a shard of a map with a number."""

    @abstractmethod
    def close(self) -> None:
        """End it."""


@dataclass
class _Place:
    """A place in the pool, for one worker after the other."""

    worker: Worker
    future: Future[bytes] | None = None
    """Answer that is waited for."""
    name: str = STARTING
    doing: tuple[int, int] | None = None
    """Number of the map and of the shard; None: nothing, or it starts."""
    since: float = field(default_factory=time.monotonic)
    ready: bool = False
    failures: int = 0
    """Number of workers lost here since one has computed a shard; those that went with their machine do not count."""


class Pool(Executor):
    """Workers that compute shards side by side."""

    def __init__(self, given: Message, number: int, hire: Callable[[], Worker]):
        self.given, self.hire = given, hire
        self.packed, self.versions = given.packed(), versions()
        self.number = 0
        self.usual = float("inf")
        self.finished: Counter[str] = Counter()  # shards by worker
        self.spent: dict[str, float] = {}  # processor time by worker [s]
        self.lost: list[str] = []
        self.foreign: set[str] = set()  # kinds of CPU that this machine is not
        self.seen = time.monotonic()
        self.idle: deque[_Place] = deque()
        self.answers: queue.SimpleQueue[tuple[_Place, Future[bytes]]] = queue.SimpleQueue()
        self.places = [_Place(hire()) for _ in range(number)]
        for place in self.places:
            self._await(place, place.worker.start(self.packed))

    # --- the map --------------------------------------------------------------------------------------------------

    def map(self, shards: Sequence[Message], shared: Message | None = None) -> Iterator[Message]:
        self.number += 1
        if self.idle:  # they have had nothing to answer since the last map
            self.seen = time.monotonic()
        packed = [shard.packed() for shard in shards]
        common = None if shared is None else self.broadcast(shared.packed())
        waiting, found, tries = deque(range(len(shards))), dict[int, Message](), Counter[int]()
        for k in range(len(shards)):
            while k not in found:
                self._give(waiting, found, packed, common)
                self._listen(waiting, found, tries)
                if k not in found and self._alone():
                    waiting = deque(n for n in waiting if n != k)
                    found[k] = self._compute(shards[k], shared)
            yield found[k]

    def broadcast(self, shared: bytes) -> bytes:
        """Return what workers are given of what shards share; a cluster has its own way to spread it."""
        return shared

    def _give(self, waiting: deque[int], found: dict[int, Message], packed: list[bytes], common: bytes | None) -> None:
        """Give shards to workers that have none: those that wait, then those that are late."""
        while self.idle:
            if not waiting and (late := self._late(found)) is not None:
                waiting.append(late)
            if not waiting:
                return
            place, k = self.idle.popleft(), waiting.popleft()
            place.doing, place.since = (self.number, k), time.monotonic()
            self._await(place, place.worker.shard(self.number, common, packed[k]))

    def _await(self, place: _Place, future: Future[bytes]) -> None:
        """Note an answer when it comes."""
        place.future = future
        future.add_done_callback(lambda done: self.answers.put((place, done)))

    def _late(self, found: dict[int, Message]) -> int | None:
        """Return a shard that takes too long, and that one worker alone has."""
        limit, now = max(LATE, LATE_FACTOR * self.usual), time.monotonic()
        taken = Counter(p.doing[1] for p in self.places if p.doing and p.doing[0] == self.number)
        for place in self.places:
            if place.doing and place.doing[0] == self.number and now - place.since > limit:
                k = place.doing[1]
                if k not in found and taken[k] == 1:
                    return k
        return None

    def _listen(self, waiting: deque[int], found: dict[int, Message], tries: Counter[int]) -> None:
        """Take an answer; wait for one if there is none."""
        try:
            place, future = self.answers.get(timeout=0.001 if self._alone() else 1.0)
        except queue.Empty:
            return
        if place.future is not future:  # of a worker that was replaced
            return
        doing, began = place.doing, place.since
        place.future, place.doing = None, None
        k = doing[1] if doing and doing[0] == self.number else None
        try:
            answer = Message.unpacked(future.result())
        except LostError as error:
            place.failures += not isinstance(error, MachineLostError)
            self._lost(place, k if k not in found else None, f"worker {place.name} {error}", tries)
            waiting.extendleft([k] if k is not None and k not in found else [])
            return
        self.seen = time.monotonic()
        if not place.ready:
            self._welcome(place, answer)
            return
        self.idle.append(place)
        if k is not None:
            took = self.seen - began
            self.usual = took if self.usual == float("inf") else 0.8 * self.usual + 0.2 * took
            self.finished[place.name] += 1
            self.spent[place.name] = self.spent.get(place.name, 0.0) + answer.note.get("processor_seconds", 0.0)
            place.failures = 0
            found.setdefault(k, _checked(answer, place.name))

    # --- who is there ---------------------------------------------------------------------------------------------

    def _welcome(self, place: _Place, answer: Message) -> None:
        """Take a worker that has started, unless it is not as this process is."""
        note = _checked(answer, STARTING).note
        place.name = note["worker"]
        ours = self.versions
        if odd := [f"{k} {v} (here {ours.get(k)})" for k, v in note["versions"].items() if v != ours.get(k)]:
            self._say(f"{place.name} is refused: it has {', '.join(odd)}; results would differ. Install the same there")
            self._dismiss(place)
            return
        place.ready = True
        self.idle.append(place)
        if note["cpu"] != host().cpu and note["cpu"] not in self.foreign:
            self.foreign.add(note["cpu"])
            _print(f"{place.name} has another CPU ({note['cpu']}, here {host().cpu}): the last bits may differ")

    def _lost(self, place: _Place, k: int | None, what: str, tries: Counter[int]) -> None:
        """Replace a worker that is lost, perhaps with a shard."""
        self._say(what)
        if place.failures >= TRIES:
            self._say(f"its place stays empty: {place.failures} workers were lost there in a row, the last: {what}")
            self._dismiss(place)
        else:
            place.worker.close()
            place.worker, place.ready, place.name = self.hire(), False, STARTING
            self._await(place, place.worker.start(self.packed))
        if k is not None:
            tries[k] += 1
            if tries[k] >= TRIES:
                raise ValueError(f"shard {k} was lost {TRIES} times; at last {what}. If memory ran out, {LESS}")

    def _dismiss(self, place: _Place) -> None:
        """Close a place."""
        place.worker.close()
        self.places.remove(place)
        if not self.places:
            raise ValueError(f"no worker is left: {self.lost[-1]}")

    def _say(self, text: str) -> None:
        self.lost.append(text)
        _print(text)

    def status(self) -> str:
        ready = [p for p in self.places if p.ready]
        done = [self.finished[p.name] for p in ready]
        each = ", ".join(f"{p.name} {n}" for p, n in zip(ready, done, strict=True))
        if len(ready) > NAMED:
            each = f"{sum(done)}, {min(done)} to {max(done)} by each"
        trouble = f"; {len(self.lost)} lost or refused, the last: {self.lost[-1]}" if self.lost else ""
        return f"{len(ready)} of {len(self.places)} there, shards done: {each}{trouble}"

    def close(self) -> None:
        for place in self.places:
            place.worker.close()
        self.places = []

    # --- without them ---------------------------------------------------------------------------------------------

    def _alone(self) -> bool:
        """Tell whether nobody has answered for a while."""
        if self.usual == float("inf"):  # a first shard may have much to compile
            return not any(p.ready for p in self.places) and time.monotonic() - self.seen > ALONE
        return time.monotonic() - self.seen > max(ALONE, LATE_FACTOR * self.usual)

    @cached_property
    def _own(self) -> Work:
        self._say("no worker answers: this process computes until one does")
        return work_of(self.given)

    def _compute(self, shard: Message, shared: Message | None) -> Message:
        if shared is not None:
            self._own.begin(shared)
        return self._own.shard(shard)


def _print(text: str) -> None:
    print(f"costate: {text}", file=sys.stderr, flush=True)


LESS = "smaller shards (--shard), or fewer workers per machine, need less"
"""Advice where memory runs out."""


def _checked(answer: Message, name: str) -> Message:
    """Return an answer that is no error."""
    if "error" not in answer.note:
        return answer
    text, kind = answer.note["error"], answer.note["kind"]
    if kind == "memory":
        raise ValueError(f"worker {name} ran out of memory; {LESS}")
    if kind == "user":
        raise ValueError(text)
    raise RuntimeError(f"worker {name} failed:\n{text}")
