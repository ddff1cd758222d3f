"""A process that runs one script within limits of processor time and memory. See `confined.py`.

Started as a file, with the limits, the script and its arguments. It imports nothing of the package, so it is ready at once.
"""

from __future__ import annotations

import runpy
import sys


def limit(seconds: int, mb: int) -> None:
    """Bound the processor time and the memory of this process, where the system can."""
    try:
        import resource
    except ImportError:  # Windows: the parent bounds the time on the clock
        return
    # The soft limit of time ends the process by SIGXCPU, from which the parent knows.
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, mb * 2**20)):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def main() -> None:
    """Set the limits, and run the script."""
    seconds, mb, script, *arguments = sys.argv[1:]
    limit(int(seconds), int(mb))
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
