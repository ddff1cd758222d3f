"""A worker process of this machine: messages in on standard input, answers out on standard output.

Started as `python -m costate.scale.worker`; it ends when its input does, and in the middle of a shard when the program is gone.
"""

from __future__ import annotations

import marshal
import os
import signal
import sys
import threading
import time

from costate.kernel.machine.pipes import receive, send
from costate.scale.desk import Desk

LOOK = 1.0
"""Time between two looks at whether the program is still there [s]."""


def main() -> None:
    """Serve messages until the input ends."""
    threading.Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Control-C is for the program, which then closes the input
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a task prints must not get between the answers
    desk = Desk()
    while True:
        try:
            method, *arguments = marshal.loads(receive(source))
            send(sink, getattr(desk, method)(*arguments))
        except (EOFError, BrokenPipeError):
            return


def _leave_with(program: int) -> None:
    """End this process when the one that started it has ended, however it did: nobody would take the answer."""
    while os.getppid() == program:
        time.sleep(LOOK)
    os._exit(1)


if __name__ == "__main__":
    main()
