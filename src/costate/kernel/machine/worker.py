"""A worker process: chunks in on standard input, object code out on standard output.

Started as `python -m costate.kernel.machine.worker`; imports little, so it is ready in a fraction of a second.
"""

from __future__ import annotations

import marshal
import sys
from typing import Any

from costate.kernel.codegen.chunks import Chunk
from costate.kernel.codegen.lower import ChunkWriter
from costate.kernel.machine.jit import module_text, object_code
from costate.kernel.machine.pipes import receive, send
from costate.kernel.machine.target import Target

Job = tuple[list[tuple[Any, ...]], tuple[str, str, str, int, int, int], str]
"""Chunks, target and number type as plain data."""


def job_text(job: Job) -> str:
    """Return the LLVM IR of a job."""
    rows, target_fields, dtype = job
    target = Target(*target_fields)
    writers = [ChunkWriter(Chunk(*row), target.names(dtype)) for row in rows]
    functions = [w.text() for w in writers]
    return module_text(target, functions, set().union(*(w.declarations() for w in writers)), [])


def job_object(job: Job) -> bytes:
    """Return the object code of a job."""
    return object_code(job_text(job), Target(*job[1]))


def main() -> None:
    """Serve jobs until the input ends."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            job = marshal.loads(receive(source))
        except EOFError:
            return
        send(sink, job_object(job))


if __name__ == "__main__":
    main()
