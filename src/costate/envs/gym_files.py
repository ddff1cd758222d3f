"""Robots of gymnasium's MuJoCo tasks, with changes: its own files are the ones to change."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from lxml import etree

from costate.robot import Robot, load_robot


def gym_robot(
    name: str, defaults: Mapping[str, Mapping[str, object]], gears: Mapping[str, float] | float | None = None
) -> Robot:
    """Return the robot of a file of gymnasium.

    defaults: kind of element ("geom", "joint") -> attributes that all elements of the kind get by default; gears: of the motors,
    by joint, or one for all.
    """
    found = find_spec("gymnasium")
    assert found is not None and found.origin is not None
    path = Path(found.origin).parent / "envs/mujoco/assets" / f"{name}.xml"
    root = etree.parse(path, etree.XMLParser(resolve_entities=False, no_network=True)).getroot()
    for kind, attributes in defaults.items():
        for element in root.iterfind(f"default/{kind}"):
            for key, value in attributes.items():
                element.set(key, str(value))
    for motor in root.iterfind("actuator/motor"):
        if gears is not None:
            motor.set("gear", str(gears[motor.get("joint", "")] if isinstance(gears, Mapping) else gears))
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder) / path.name
        changed.write_bytes(etree.tostring(root))
        return load_robot(changed)
