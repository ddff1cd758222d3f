"""Cases of a study that do not depend on each other: computed by this process, by several, or by a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any

import torch

from costate.scale.choose import Cluster, executor
from costate.scale.executor import Work
from costate.scale.message import Message


class Cases(Work):
    """A function of a study, for workers, which compute in one thread, as studies do."""

    def __init__(self, given: Message):
        module, _, name = given.note["function"].partition(":")
        self.function = getattr(import_module(module), name)
        torch.set_num_threads(1)
        torch.set_default_dtype(getattr(torch, given.note["dtype"]))

    def shard(self, shard: Message) -> Message:
        return Message({"found": self.function(*shard.note["case"])})


def shared(function: Callable[..., Any], cases: Sequence[Sequence[Any]], where: Cluster) -> Iterator[Any]:
    """Yield what a function at the top of a module returns for each case, its arguments; in their order.

    Arguments and results are what JSON has: numbers, texts, lists and dictionaries. Without workers the function is called here.
    """
    if where.alone:
        yield from (function(*case) for case in cases)
        return
    module = function.__module__
    if module == "__main__":  # as `python -m` calls the study
        module = sys.modules["__main__"].__spec__.name  # pyright: ignore[reportOptionalMemberAccess]
    dtype = str(torch.get_default_dtype()).removeprefix("torch.")
    given = Message({"work": f"{__name__}:Cases", "function": f"{module}:{function.__name__}", "dtype": dtype})
    with executor(given, where) as workers:
        for answer in workers.map([Message({"case": list(case)}) for case in cases]):
            yield answer.note["found"]


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands whose work can be shared."""
    parser.add_argument("--cluster", default="", help="workers: local, auto or the address of a Ray cluster")
    parser.add_argument(
        "--workers", type=int, default=0, help="number of workers; 0: one per core of the cluster, or none"
    )


def cluster_of(given: argparse.Namespace) -> Cluster:
    """Return who computes, by the options."""
    return Cluster(**{f.name: getattr(given, f.name) for f in fields(Cluster)})
