"""Teams: threads that share one sample of a kernel over fields (see `codegen/stages/fields/team.py`)."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import numpy as np

from costate.kernel.codegen.stages.fields.team import HOME_WORD, TEAM_WORDS

_Helper = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Team:
    """The memory through which the threads of one call agree on what to do."""

    def __init__(self, helper: int):
        self._words = np.zeros(TEAM_WORDS + 8, np.int64)
        shift = -self._words.ctypes.data % 64 // 8
        self._words = self._words[shift:]
        self.address = self._words.ctypes.data
        self._helper = _Helper(helper)

    def help(self, workspace: int) -> None:
        """Take shares of work until the one who leads is done."""
        self._helper(self.address, workspace)

    def lead(self, run: Callable[[], None]) -> None:
        """Run the program, and send the helpers home."""
        try:
            run()
        finally:
            self._words[HOME_WORD] = 1


def yield_address() -> int:
    """Return the address of the system's function that lets other threads run."""
    if sys.platform == "win32":
        return ctypes.cast(ctypes.windll.kernel32.SwitchToThread, ctypes.c_void_p).value or 0  # type: ignore[attr-defined]
    return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0
