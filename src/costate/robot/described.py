"""Robots in words: what they are made of, and what they learn."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from costate.core.names import listed

if TYPE_CHECKING:
    from costate.robot.robot import Robot


def described(robot: Robot) -> str:
    """Return what a robot is made of, in a few lines: its base, joints, links and mass, and what it learns."""
    model = robot.model
    moving = [j for j in model.joints if j.nv]
    base = (
        "floating base"
        if any(j.kind == "floating" and j.parent == model.links[0].name for j in moving)
        else "fixed base"
    )
    kinds = Counter(j.kind for j in moving if j.kind != "floating")
    joints = ", ".join(f"{n} {kind}" for kind, n in kinds.items()) or "no"
    lines = [
        f"Robot '{robot.name}': {base}, {joints} joints, {len(model.links)} links, {model.total_mass:.4g} kg",
        f"  nq = {robot.nq} coordinates, nv = {robot.nv} velocities, {str(robot.dtype).removeprefix('torch.')}",
        f"  joints: {listed([j.name for j in moving]) or 'none'}",
        f"  links: {listed(robot.link_names)}",
    ]
    if entries := robot.learnable():
        names = [f"{e.parameter} of {e.owner or 'the world'} ({type(e.module).__name__})" for e in entries]
        lines.append(f"  learns: {listed(names)}")
    if robot.residuals:
        lines.append(f"  residuals: {', '.join(type(m).__name__ for m in robot.residuals)}")
    if robot.wirings:
        lines.append(f"  networks: {listed([w.name for w in robot.wirings])}")
    return "\n".join(lines)
