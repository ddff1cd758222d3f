"""A worker process of this machine: messages in on standard input, answers out on standard output.

Started as `python -m costate.scale.worker`; it ends when its input does.
"""

from __future__ import annotations

import marshal
import os
import signal
import sys

from costate.kernel.machine.pipes import receive, send
from costate.scale.desk import Desk


def main() -> None:
    """Serve messages until the input ends."""
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


if __name__ == "__main__":
    main()
