"""Tool paths from G-code: straight moves, dwells, and a laser that is on by M3, S or E.

| code | meaning |
|---|---|
| G0 | move with the laser off, at the `rapid` speed or at an F on the same line |
| G1 | move at the feed F [units per minute] |
| G4 | dwell: P [ms], or S [s] |
| G20, G21 | units are inches, millimetres |
| G90, G91 | positions are absolute, relative |
| G92 | the present position gets the given coordinates |
| M3, M4, M5 | laser on, on during moves only, off; S is its power, and S0 is off |
| M82, M83 | E is absolute, relative; a G1 during which E grows has the laser on |
| M2, M30 | end |
| G17, G94 | accepted: the XY plane, feed per minute |

Comments are in parentheses or after a semicolon. A first G0 takes no time: it goes to where the path begins. Moves of E alone take
no time. Everything else is an error, unless it is named in `ignore`.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from costate.continuum.checks import positive
from costate.continuum.toolpath import ToolPath
from costate.core.files import write_text
from costate.core.readers.text import finite, lines_of, shown

_WORD = re.compile(r"([A-Z])\s*([+-]?(?:\d+\.?\d*|\.\d+))", re.ASCII)
_COMMENT = re.compile(r"\([^)]*(\)?)|;.*")
"""A comment; one without its end is matched, too, and refused: else each parenthesis would be a search to the end of the line."""
_AXES = "XYZ"
_MODAL = {"G0", "G1"}
Words = dict[str, float]


def read_gcode(path: str | Path, rapid: float = 0.05, ignore: Collection[str] = ()) -> ToolPath:
    """Return the path of a G-code program, from time 0.

    Args:
        path: File.
        rapid: Speed of G0 without an F [m/s].
        ignore: Codes to skip, such as ("M104", "M106").
    """
    positive(rapid=rapid)
    machine = _Machine(rapid)
    skipped = {_name(*_first_word(code)) for code in ignore}
    for place, line in lines_of(Path(path)):
        try:
            if _line(machine, line, skipped):
                break
        except ValueError as error:
            raise ValueError(f"{path}, line {place}: {error}") from None
    try:
        return ToolPath(np.array(machine.times), np.array(machine.positions).reshape(-1, 3), np.array(machine.on) > 0)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def write_gcode(path: str | Path, toolpath: ToolPath) -> None:
    """Write a G-code program that follows a path, with M3 and M5 for the laser; times count from the first row."""
    lines = ["G21 G90", "G0" + _words(toolpath.positions[0]), "M5"]
    lit = False
    for k in range(1, len(toolpath.times)):
        duration, length = toolpath.times[k] - toolpath.times[k - 1], toolpath.lengths[k - 1]
        if duration == 0 and length > 0:
            raise ValueError(
                f"row {k} of the path is a jump of {length:g} m in no time; G-code has none: give the move some time"
            )
        if lit != toolpath.on[k]:
            lit = bool(toolpath.on[k])
            lines.append("M3" if lit else "M5")
        if length > 0:
            lines.append(f"G1{_words(toolpath.positions[k])} F{60e3 * length / duration:.12g}")
        elif duration > 0:
            lines.append(f"G4 P{1e3 * duration:.12g}")
    write_text(Path(path), "\n".join([*lines, "M5", "M2"]) + "\n")


def _words(position: NDArray[np.float64]) -> str:
    return "".join(f" {axis}{_decimal(1e3 * x)}" for axis, x in zip(_AXES, position, strict=True))


def _decimal(value: float) -> str:
    """Return a number without an exponent, which G-code has not."""
    return f"{value:.9f}".rstrip("0").rstrip(".")


@dataclass
class _Machine:
    """State of the machine while a program runs; positions are its own, in metres."""

    rapid: float
    unit: float = 1e-3
    relative: bool = False
    relative_e: bool = False
    feed: float | None = None
    laser: str = "M5"
    power: float | None = None
    e: float = 0.0
    motion: str | None = None
    position: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    offset: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    # Rows of the path so far, packed: a file may have millions of lines.
    times: array[float] = field(default_factory=lambda: array("d"))
    positions: array[float] = field(default_factory=lambda: array("d"))
    on: bytearray = field(default_factory=bytearray)

    @property
    def lit(self) -> bool:
        return self.laser != "M5" and self.power != 0

    def row(self, duration: float, on: bool) -> None:
        """Add a row at the present position."""
        if not (time := (self.times[-1] if self.times else 0.0) + duration) < np.inf:
            raise ValueError(f"a move or dwell of {duration:g} s, at {time:g} s; expected a finite time")
        self.times.append(time)
        self.positions.extend(self.position)
        self.on.append(on)

    def move(self, code: str, words: Words) -> None:
        """Carry out a straight move."""
        self.motion = code
        if "F" in words:
            self.feed = self._feed(words["F"])
        extruding = self._extrude(words)
        if not any(axis in words for axis in _AXES):
            return
        target = self.position.copy()
        for k, axis in enumerate(_AXES):
            if axis in words:
                target[k] = self.unit * words[axis] + (self.position[k] if self.relative else self.offset[k])
        start, length = not self.times, float(np.linalg.norm(target - self.position))
        if start and code == "G1":
            self.row(0.0, False)
        if code == "G0" and "F" not in words:
            speed = self.rapid
        elif self.feed is None:
            raise ValueError(f"{code} without a feed; expected an F [units per minute] on this line or before it")
        else:
            speed = self.feed
        self.position = target
        if start and code == "G0":
            self.row(0.0, False)
        elif length > 0:
            self.row(length / speed, code == "G1" and (self.lit or extruding))

    def _feed(self, value: float) -> float:
        if not (speed := self.unit * value / 60) > 0:
            raise ValueError(f"F{value:g} is no feed; expected one above 0 [units per minute]")
        return speed

    def _extrude(self, words: Words) -> bool:
        """Take over E, and tell whether it has grown."""
        if "E" not in words:
            return False
        before, self.e = self.e, words["E"] + (self.e if self.relative_e else 0.0)
        return self.e > before

    def dwell(self, code: str, words: Words) -> None:
        """Wait."""
        if ("P" in words) == ("S" in words):
            raise ValueError("G4 needs either P [ms] or S [s]")
        time = words["P"] / 1e3 if "P" in words else words["S"]
        if time < 0:
            raise ValueError(f"G4 of {time:g} s; expected a time of 0 or more")
        if not self.times:
            self.row(0.0, False)
        if time > 0:
            self.row(time, self.lit and self.laser == "M3")

    def set_position(self, code: str, words: Words) -> None:
        """Give the present position other coordinates."""
        if not any(axis in words for axis in (*_AXES, "E")):
            words = dict.fromkeys((*_AXES, "E"), 0.0)
        for k, axis in enumerate(_AXES):
            if axis in words:
                self.offset[k] = self.position[k] - self.unit * words[axis]
        self.e = words.get("E", self.e)

    def set(self, **values: object) -> None:
        """Change settings."""
        for name, value in values.items():
            setattr(self, name, value)


_CODES: dict[str, Callable[[_Machine, str, Words], None]] = {
    "G0": _Machine.move,
    "G1": _Machine.move,
    "G4": _Machine.dwell,
    "G17": lambda machine, code, words: None,
    "G20": lambda machine, code, words: machine.set(unit=0.0254),
    "G21": lambda machine, code, words: machine.set(unit=1e-3),
    "G90": lambda machine, code, words: machine.set(relative=False),
    "G91": lambda machine, code, words: machine.set(relative=True),
    "G92": _Machine.set_position,
    "G94": lambda machine, code, words: None,
    "M3": lambda machine, code, words: machine.set(laser=code),
    "M4": lambda machine, code, words: machine.set(laser=code),
    "M5": lambda machine, code, words: machine.set(laser=code),
    "M82": lambda machine, code, words: machine.set(relative_e=False),
    "M83": lambda machine, code, words: machine.set(relative_e=True),
}
"""Code -> what it does with the words of its line."""

_LATE = ("G4", "G0", "G1")
"""Codes that act after all others of their line."""


def _line(machine: _Machine, line: str, skipped: set[str]) -> bool:
    """Carry out a line, and tell whether the program ends with it."""
    codes, words = _parse(line)
    known = [code for code in codes if code not in skipped]
    if len(known) < len(codes) and not known:
        return False
    for code in known:
        if code not in _CODES and code not in ("M2", "M30"):
            hint = ": arcs are not supported, split them into G1" if code in ("G2", "G3") else ""
            raise ValueError(
                f"{code} is not known{hint}; expected one of {', '.join(_CODES)}, M2, M30, or ignore=({code!r},)"
            )
    if strange := sorted(set(words) - set("NXYZEFSP")):
        raise ValueError(
            f"{strange[0]}{words[strange[0]]:g} is not understood; expected the words G, M, X, Y, Z, E, F, S, P and N"
        )
    if not known and any(axis in words for axis in (*_AXES, "E")):
        if machine.motion is None:
            raise ValueError("coordinates without a G0 or G1 on this line or before it")
        known = [machine.motion]
    if "S" in words and "G4" not in known:
        machine.power = words["S"]
    if "F" in words and not _MODAL & set(known):
        machine.feed = machine._feed(words["F"])
    for code in sorted((c for c in known if c in _CODES), key=lambda c: _LATE.index(c) if c in _LATE else -1):
        _CODES[code](machine, code, words)
    return "M2" in known or "M30" in known


def _parse(line: str) -> tuple[list[str], Words]:
    """Return the codes of a line (G1, M3) and its other words."""
    text = _COMMENT.sub(_blank, line).split("*")[0].strip()
    if text in ("", "%"):
        return [], {}
    text = text.upper() if text.isascii() else text  # others may become letters of ASCII
    if (rest := _WORD.sub("", text).strip()) != "":
        raise ValueError(f"{shown(rest)} is not understood; expected words such as G1 X10.5 F600")
    codes, words = [], {}
    for letter, value in _WORD.findall(text):
        if letter in "GM":
            codes.append(_name(letter, value))
        else:
            words[letter] = finite(value)
    return codes, words


def _blank(comment: re.Match[str]) -> str:
    if comment[0][0] == "(" and not comment[1]:
        raise ValueError(f"the comment {shown(comment[0])} has no end; expected )")
    return " "


def _first_word(code: str) -> tuple[str, str]:
    found = _WORD.fullmatch(code.strip().upper())
    if not found:
        raise ValueError(f"ignore has {code!r}; expected codes such as 'M106'")
    return found[1], found[2]


def _name(letter: str, value: str) -> str:
    """Return the name of a code without leading zeros: G01 is G1, G91.1 stays."""
    return f"{letter}{finite(value):g}"
