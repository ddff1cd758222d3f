"""Tells which MJCF files MuJoCo surely compiles at once: bodies, geoms and the like, few of them, and small meshes."""

from __future__ import annotations

import math
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from costate.model.mjcf.limits import Content, numbers

ELEMENTS = 2000
"""Largest number of elements of a plain file."""
ASSET_BYTES = 2 * 2**20
"""Largest size of all its meshes and textures; the hull of a mesh of 3 MB can take seconds."""
_ROWS = 3000
"""Largest number in <size>, but for those of the stack."""
_TAGS = frozenset(
    (
        *("mujoco", "mujocoinclude", "include", "compiler", "option", "flag", "size", "statistic", "default"),
        *("visual", "global", "quality", "headlight", "map", "scale", "rgba"),
        *("asset", "texture", "material", "layer", "mesh", "hfield"),
        *("worldbody", "body", "inertial", "joint", "freejoint", "geom", "site", "camera", "light", "frame"),
        *("contact", "pair", "exclude", "equality", "connect", "weld", "tendon", "fixed", "spatial", "pulley"),
        *("actuator", "general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "adhesion"),
        *("sensor", "custom", "numeric", "text", "tuple", "element", "keyframe", "key"),
    )
)
_LARGEST = {
    "texture": (("width", "height"), 4_000_000),
    "hfield": (("nrow", "ncol"), 1_000_000),
    "numeric": (("size",), 100_000),
}
"""Attributes whose product is bounded, and the bound, by element."""


def is_plain(content: Content) -> bool:
    """Tell whether all of a file is of kinds whose cost is known, and small."""
    if content.asset_bytes > ASSET_BYTES or content.count > ELEMENTS:
        return False
    return all(_plain(element) for root in content.roots for element in root.iter(etree.Element))


def _plain(element: Any) -> bool:
    parent = element.getparent()
    sensor = parent is not None and parent.tag == "sensor" and element.tag not in ("plugin", "user")
    if element.tag not in _TAGS and not sensor:
        return False
    # Muscles are simulated for their range of lengths; delays need room for samples; built-in meshes are made to order.
    if "nsample" in element.attrib or "muscle" in element.attrib.values() or "octree_maxdepth" in element.attrib:
        return False
    if element.tag == "mesh" and "builtin" in element.attrib:
        return False
    if element.tag == "size":
        return all(max([0.0, *numbers(v)]) <= _ROWS for a, v in element.attrib.items() if a not in ("nstack", "memory"))
    attributes, most = _LARGEST.get(element.tag, ((), math.inf))
    return math.prod(max([1.0, *numbers(element.get(a, ""))]) for a in attributes) <= most
