"""Robots of gymnasium's MuJoCo tasks with other numbers: its files are read, changed and loaded. Needs gymnasium (extra "rl")."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from costate.core.extras import needs
from costate.robot import Robot, load_robot


def gym_file(name: str) -> Path:
    """Return the path of a file of gymnasium: "ant" for ant.xml."""
    found = find_spec("gymnasium")
    if found is None or found.origin is None:
        raise ImportError(needs(f"the environment of '{name}'", "gymnasium", "rl"))
    return Path(found.origin).parent / "envs/mujoco/assets" / f"{name}.xml"


def gym_robot(name: str, defaults: Mapping[str, Mapping[str, float]], gear: float) -> Robot:
    """Return the robot of a file of gymnasium.

    defaults: kind of element ("geom", "joint") -> attributes of those elements that do not say their own; gear: of all motors.
    """
    path = gym_file(name)
    root = etree.parse(path, etree.XMLParser(resolve_entities=False, no_network=True)).getroot()
    for kind, attributes in defaults.items():
        for element in root.iterfind(f"default/{kind}"):
            element.attrib.update({key: str(value) for key, value in attributes.items()})
    for motor in root.iterfind("actuator/motor"):
        motor.set("gear", str(gear))
    for compiler in root.iterfind("compiler"):
        compiler.attrib.pop("settotalmass", None)  # masses follow from the density
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder) / path.name
        changed.write_bytes(etree.tostring(root))
        return load_robot(changed)
