"""Chunks: a tape cut into pieces of bounded size.

LLVM is superlinear in the size of a basic block. Each chunk becomes a function of its own, and values that cross a cut travel
through slots of the workspace. Chunks are plain data, so that worker processes can write and compile them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from costate.kernel.codegen.tape import NOT_COUNTED, Tape

CHUNK_OPS = 1000


@dataclass(frozen=True)
class Chunk:
    """A piece of a tape. Pointers: inputs, outputs, then the workspace, each an array of vectors."""

    name: str
    n_inputs: int
    n_outputs: int
    body: list[tuple[int, tuple[Any, ...]]]
    """Pairs (value, instruction) in order."""
    loads: dict[int, int]
    """Value defined in an earlier chunk -> workspace slot."""
    saves: dict[int, int]
    """Value needed by a later chunk -> workspace slot."""
    stores: dict[int, list[tuple[int, int]]]
    """Value -> (output, element) places it is written to."""


def cut(name: str, tape: Tape, n_inputs: int, n_outputs: int, size: int = CHUNK_OPS) -> tuple[list[Chunk], int]:
    """Cut a tape into chunks; returns them and the number of workspace slots they need."""
    home = _chunk_of(tape, size)
    n_chunks = max(home, default=0) + 1
    last = _last_use(tape, home)
    slots, n_slots = _assign_slots(tape, home, last, n_chunks)
    stores: dict[int, list[tuple[int, int]]] = {}
    for out, element, value in tape.outputs:
        stores.setdefault(value, []).append((out, element))
    bodies: list[list[tuple[int, tuple[Any, ...]]]] = [[] for _ in range(n_chunks)]
    for value, ins in enumerate(tape.instructions):
        bodies[home[value]].append((value, ins))
    chunks = []
    for c, body in enumerate(bodies):
        defined = {v for v, _ in body}
        used = {a for _, ins in body if ins[0] not in ("input", "const") for a in ins[1:]}
        remade = sorted(v for v in used - defined if tape.instructions[v][0] in ("input", "const"))
        body = [(v, tape.instructions[v]) for v in remade] + body
        loads = {v: slots[v] for v in sorted(used - defined) if v in slots}
        saves = {v: slots[v] for v in sorted(defined) if v in slots}
        mine = {v: stores[v] for v in sorted(defined) if v in stores}
        chunks.append(Chunk(f"{name}_c{c}", n_inputs, n_outputs, body, loads, saves, mine))
    return chunks, n_slots


def _chunk_of(tape: Tape, size: int) -> list[int]:
    """Return the chunk index of every instruction. The second half of a sincos stays with its first."""
    home: list[int] = []
    count = 0
    for ins in tape.instructions:
        count += ins[0] not in NOT_COUNTED
        home.append(home[ins[1]] if ins[0] == "second" else max(count - 1, 0) // size)
    return home


def _last_use(tape: Tape, home: list[int]) -> dict[int, int]:
    last: dict[int, int] = {}
    for value, ins in enumerate(tape.instructions):
        if ins[0] not in ("input", "const"):
            for a in ins[1:]:
                last[a] = max(last.get(a, 0), home[value])
    return last


def _assign_slots(tape: Tape, home: list[int], last: dict[int, int], n_chunks: int) -> tuple[dict[int, int], int]:
    """Return the workspace slots for values that cross a cut, reused as soon as the last reader's chunk is over."""
    crossing = [
        v
        for v, ins in enumerate(tape.instructions)
        if last.get(v, home[v]) > home[v] and ins[0] not in ("input", "const")
    ]
    ends: list[list[int]] = [[] for _ in range(n_chunks)]
    born: list[list[int]] = [[] for _ in range(n_chunks)]
    for v in crossing:
        born[home[v]].append(v)
        ends[last[v]].append(v)
    slots: dict[int, int] = {}
    free: list[int] = []
    total = 0
    for c in range(n_chunks):
        for v in born[c]:
            if free:
                slots[v] = free.pop()
            else:
                slots[v] = total
                total += 1
        free.extend(slots[v] for v in ends[c])
    return slots, total
