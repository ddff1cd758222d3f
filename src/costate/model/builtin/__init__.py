"""Robots that need no file, written from published parameters with simple shapes of our own."""

from __future__ import annotations

import re
from collections.abc import Callable

from costate.model.builtin.allegro_hand import allegro_hand
from costate.model.builtin.ant import ant
from costate.model.builtin.fetch_arm import fetch_arm
from costate.model.builtin.iiwa7 import iiwa7
from costate.model.builtin.laikago import laikago
from costate.model.builtin.panda import panda
from costate.model.builtin.pendulum import pendulum, two_link
from costate.model.builtin.racecar import racecar
from costate.model.builtin.shadow_hand import shadow_hand
from costate.model.builtin.ur5 import ur5
from costate.model.model import Model

ROBOTS: dict[str, Callable[[], Model]] = {
    "ur5": ur5,
    "iiwa7": iiwa7,
    "panda": panda,
    "fetch_arm": fetch_arm,
    "allegro_hand": allegro_hand,
    "shadow_hand": shadow_hand,
    "laikago": laikago,
    "ant": ant,
    "racecar": racecar,
    "two_link": two_link,
    "pendulum": pendulum,
}

_PENDULUM = re.compile(r"pendulum\(?(\d{1,3})\)?$")


def builtin_names() -> tuple[str, ...]:
    """Names that `load_model` knows. A number may follow "pendulum": "pendulum7" has seven links."""
    return tuple(ROBOTS)


def builtin(name: str) -> Model | None:
    """The built-in robot of that name, or None."""
    if match := _PENDULUM.match(name):
        return pendulum(int(match[1]))
    return ROBOTS[name]() if name in ROBOTS else None
