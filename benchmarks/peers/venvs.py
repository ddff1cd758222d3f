"""An environment per peer, made once and kept: `~/.cache/costate/bench/NAME`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.peer import Peer

READY = "costate-bench.json"
"""Inside of an environment: the requirements it was made for, written last."""
LIMIT = 300.0
"""Seconds that installing a peer may take."""
PEER_PYTHON = "interpreter that has all peers; default: each has an environment of its own, made once and kept (--smoke: this one)"
"""Help of the option --peer-python."""


@dataclass(frozen=True)
class Environment:
    """The interpreter of a peer, or the reason why there is none."""

    peer: Peer
    python: Path | None
    reason: str = ""


def default_folder() -> Path:
    from costate.kernel.machine.cache import cache_path

    return (cache_path() or Path.home() / ".cache" / "costate") / "bench"


def environment(peer: Peer, folder: Path, limit: float, say: Callable[[str], None]) -> Environment:
    """The peer's environment, installed if it is not there yet. limit: seconds that pip may take."""
    if not peer.requirements:
        return Environment(peer, Path(sys.executable))
    home = folder / peer.name
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = home / READY
    if ready.exists() and json.loads(ready.read_text()) == list(peer.requirements):
        return Environment(peer, python)
    say(f"{peer.title}: installing {', '.join(peer.requirements)} into {home}")
    start = time.monotonic()
    reason = _install(peer, home, python, limit)
    if reason:
        shutil.rmtree(home, ignore_errors=True)
        say(f"{peer.title}: not installed: {reason}")
        return Environment(peer, None, reason)
    ready.write_text(json.dumps(peer.requirements))
    say(f"{peer.title}: installed in {time.monotonic() - start:.0f} s")
    return Environment(peer, python)


def interpreter(peer: Peer, given: str | None, smoke: bool) -> Path:
    """Return what runs a peer: the interpreter given, or that of its own environment; with smoke this one."""
    if given or smoke or not peer.requirements:
        return Path(given if given and peer.requirements else sys.executable)
    made = environment(peer, default_folder(), LIMIT, lambda text: print(text, file=sys.stderr, flush=True))
    return made.python or Path(sys.executable)


def _install(peer: Peer, home: Path, python: Path, limit: float) -> str:
    """Install the peer, and return the reason if that failed, else nothing."""
    shutil.rmtree(home, ignore_errors=True)
    home.parent.mkdir(parents=True, exist_ok=True)
    venv.create(home, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.requirements]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"pip did not finish in {limit:.0f} s"
    return "" if done.returncode == 0 else pip_reason(done.stderr)


def pip_reason(output: str) -> str:
    """The line of pip's output that says what is wrong."""
    lines = [line.removeprefix("ERROR: ").strip() for line in output.splitlines() if line.startswith("ERROR: ")]
    telling = [
        line for line in lines if line.startswith(("No matching distribution", "Could not find", "Failed to build"))
    ]
    return (telling or lines or ["pip failed without saying why"])[-1]
