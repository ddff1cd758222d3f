"""Writes URDF files, such that reading them gives the same robot.

What plain URDF cannot say is written in further attributes, which other readers pass over; docs/robots.md lists them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from costate.core.files import write_atomically
from costate.model.model import EARTH, Model
from costate.model.urdf.element import add, row
from costate.model.urdf.joint import write_joint
from costate.model.urdf.link import write_link


def write_urdf(model: Model, path: str | Path) -> None:
    """Write a robot to a URDF file. Meshes that lie below it are named relative to it, others by their full path."""
    path = Path(path)
    root = etree.Element("robot", name=model.name)
    if not np.array_equal(model.gravity, EARTH):
        add(root, "gravity", xyz=row(model.gravity))
    moving = {j.child for j in model.joints if j.kind != "fixed"}
    for link in model.links:
        write_link(root, link, link.name in moving, path)
    for joint in model.joints:
        write_joint(root, joint)
    data = etree.tostring(root, pretty_print=True, xml_declaration=True, encoding="utf-8")
    write_atomically(path, lambda temporary: temporary.write_bytes(data))
