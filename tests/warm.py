"""Scripts in processes of their own that need not load torch, CasADi and SciPy first: forks of an interpreter that has.

Loading them takes two to four seconds of processor time, more than most snippets of the documentation. The interpreter only
imports: it computes nothing, chooses no number type and starts no thread, so a fork of it is as a new process. Where there
is no fork, and for tests of importing itself, a new process is what is used.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn

LOADED = (
    *("torch", "torch.nn", "torch.optim", "numpy", "casadi", "llvmlite.binding", "lxml.etree", "matplotlib.figure"),
    *("torch.fx.experimental.symbolic_shapes", "torch._decomp.decompositions_for_jvp"),  # by the first derivative
    *(
        "matplotlib.backends.backend_agg",
        "scipy.optimize",
        "scipy.sparse.linalg",
        "scipy.spatial",
        "rich.progress",
        "tyro",
    ),
    *(
        "safetensors.torch",
        "costate.robot",
        "costate.sim",
        "costate.train.trainer",
        "costate.draw.render",
        "costate.continuum",
    ),
    *("costate.optimise", "costate.identify", "costate.report.report", "costate.audit.gradcheck", "costate.cli.main"),
)
"""What is loaded before the first fork."""


def run_warm(
    argv: list[str], folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python ARGV...` (a file, or -m and a module) in a folder, with these variables added; return what it printed."""
    added = dict(environment or {})
    if not hasattr(os, "fork"):
        command = [sys.executable, *argv]
        return subprocess.run(command, cwd=folder, env=os.environ | added, capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as kept:
        order = {"argv": argv, "folder": str(folder), "environment": dict(os.environ) | added, "kept": kept}
        server = _server()
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = (Path(kept, name).read_text(errors="replace") for name in ("out", "err"))
    return subprocess.CompletedProcess(argv, code, out, err)


@cache
def _server() -> subprocess.Popen[str]:
    """Start the interpreter; it ends when this process does, since its input does."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.warm"],
        cwd=Path(__file__).parent.parent,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _serve() -> None:
    """Fork for every line of the input, and answer with the child's exit code."""
    for name in LOADED:
        import_module(name)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _run(**json.loads(line))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _set_warnings(environment: Mapping[str, str]) -> None:
    """Do what Python does with PYTHONWARNINGS when it starts."""
    for rule in filter(None, environment.get("PYTHONWARNINGS", "").split(",")):
        action, _, category = rule.partition("::")
        warnings.filterwarnings(action, category=getattr(__import__("builtins"), category))  # type: ignore[arg-type]


def _end(code: object) -> NoReturn:
    """Do what is registered for the end of a process, and end it as `sys.exit` would."""
    if isinstance(code, str):
        print(code, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(bool(code)))


def _run(argv: list[str], folder: str, environment: dict[str, str], kept: str) -> NoReturn:
    """Be the script: its folder, its variables, its output. In the end do what is registered for it, but do not take apart all that
    was loaded before."""
    for number, name in enumerate(("out", "err"), start=1):
        os.dup2(os.open(os.path.join(kept, name), os.O_WRONLY | os.O_CREAT), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    _set_warnings(environment)
    with contextlib.suppress(ValueError):
        sys.path.remove(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        if argv[0] == "-m":
            sys.argv = argv[1:]
            sys.path.insert(0, folder)
            runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(map(str, argv))
            sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    else:
        code = 0
    _end(code)


if __name__ == "__main__":
    _serve()
