"""Entry point of the `costate` command: find the command, parse its options, run it, report errors in one line."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from costate import __version__
from costate.cli.commands import COMMANDS

# What a user can cause and mend: a wrong value, a file or address that cannot be used, an extra that is not installed.
USER_ERRORS = (ValueError, OSError, ImportError)

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130  # as a shell reports SIGINT
EXIT_BROKEN_PIPE = 141  # as a shell reports SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, what the command itself returns (1: it found something wrong), or 2 for a
    mistake in the call or in what it names."""
    arguments, want_traceback = _split_traceback(sys.argv[1:] if argv is None else argv)
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, say `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except USER_ERRORS as error:
        if want_traceback:
            traceback.print_exc()
        print(f"costate: error: {_one_line(error)}", file=sys.stderr)
        return EXIT_ERROR
    return code


def _split_traceback(argv: Sequence[str]) -> tuple[list[str], bool]:
    """Take `--traceback`, which every command understands, out of the arguments."""
    wanted = "--traceback" in argv or os.environ.get("COSTATE_TRACEBACK", "") not in ("", "0")
    return [a for a in argv if a != "--traceback"], wanted


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help())
    elif arguments[0] == "--version":
        print(f"costate {__version__}")
    else:
        return _run(arguments[0], arguments[1:])
    return 0


def _help() -> str:
    width = max(map(len, COMMANDS))
    rows = [f"  {name:<{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: costate COMMAND [OPTIONS]",
            "",
            "Exact, checked gradients of robot physics, compiled.",
            "",
            "commands:",
            *rows,
            "",
            "costate COMMAND --help   options of a command",
            "costate --version        version of costate alone",
            "--traceback              where an error came from (also: COSTATE_TRACEBACK=1)",
        ]
    )


def _run(name: str, arguments: list[str]) -> int:
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "the commands are " + ", ".join(COMMANDS)
        raise ValueError(f"unknown command {name!r}; {hint}")
    import tyro  # only now: `costate --help` does not wait for it

    run, options_type = COMMANDS[name].load()
    default = COMMANDS[name].defaults(arguments)
    about: dict[str, Any] = {"prog": f"costate {name}", "description": COMMANDS[name].description, "args": arguments}
    # tyro prints its own message and exits with code 2 when the options are wrong.
    if default is None:
        return run(tyro.cli(options_type, **about)) or 0
    return run(tyro.cli(type(default), default=default, **about)) or 0


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
