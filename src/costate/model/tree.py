"""Links and joints in tree order, and errors about what is no tree."""

from __future__ import annotations

from dataclasses import replace

from costate.core.limits import excess
from costate.model.errors import Assumptions, ModelError
from costate.model.joint import JOINT_SIZES, Joint, Mimic
from costate.model.model import Link


def order(name: str, links: dict[str, Link], joints: list[Joint]) -> tuple[tuple[Link, ...], tuple[Joint, ...]]:
    """Return links and joints depth first, siblings in the order of the joints given, so that joint i moves link i + 1."""
    if not links:
        raise ModelError(f"{name}: the robot has no link; add at least one <link>")
    children: dict[str, list[Joint]] = {link: [] for link in links}
    moved: dict[str, Joint] = {}
    for joint in joints:
        if joint.child in moved:
            raise ModelError(
                f"{name}: link {joint.child!r} is the child of two joints, {moved[joint.child].name!r} and "
                f"{joint.name!r}; a robot must be a tree, so close loops with a constraint instead"
            )
        moved[joint.child] = joint
        children[joint.parent].append(joint)
    return _walk(links, children, _root(name, links, children, moved))


def _root(name: str, links: dict[str, Link], children: dict[str, list[Joint]], moved: dict[str, Joint]) -> str:
    roots = [link for link in links if link not in moved]
    if len(roots) > 1:
        shown = ", ".join(map(repr, roots[:6]))
        raise ModelError(
            f"{name}: {len(roots)} links have no parent ({shown}); connect all but one of them with joints"
        )
    reached, stack = set(), list(roots)
    while stack:
        link = stack.pop()
        reached.add(link)
        stack += [j.child for j in children[link]]
    lost = [link for link in links if link not in reached]
    if lost:
        raise ModelError(f"{name}: the joints form a cycle through the links {', '.join(map(repr, lost[:6]))}; cut it")
    return roots[0]


def _walk(links: dict[str, Link], children: dict[str, list[Joint]], root: str):
    ordered: list[Joint] = []
    stack = list(reversed(children[root]))
    while stack:
        joint = stack.pop()
        ordered.append(joint)
        stack += reversed(children[joint.child])
    return (links[root], *(links[j.child] for j in ordered)), tuple(ordered)


def resolve_mimics(name: str, joints: list[Joint]) -> list[Joint]:
    """Make every mimic joint follow the joint at the end of its chain directly."""
    by_name = {j.name: j for j in joints}
    return [replace(j, mimic=_resolve(name, j, by_name)) if j.mimic else j for j in joints]


def _resolve(name: str, joint: Joint, by_name: dict[str, Joint]) -> Mimic:
    multiplier, offset, seen, current = 1.0, 0.0, [joint.name], joint
    while mimic := current.mimic:
        # q = multiplier * q_current + offset, and q_current = mimic.multiplier * q_next + mimic.offset.
        multiplier, offset = multiplier * mimic.multiplier, multiplier * mimic.offset + offset
        if mimic.joint not in by_name:
            raise ModelError(f"{name}: joint {current.name!r} mimics {mimic.joint!r}, but there is no such joint")
        if mimic.joint in seen:
            raise ModelError(
                f"{name}: the mimic joints {' -> '.join([*seen, mimic.joint])} follow each other in a cycle"
            )
        seen.append(mimic.joint)
        if problem := excess("mimic_chain", len(seen) - 1):
            raise ModelError(f"{name}: joint {joint.name!r}: {problem}")
        current = by_name[mimic.joint]
    for j in (joint, current):
        if JOINT_SIZES[j.kind] != (1, 1):
            raise ModelError(
                f"{name}: joint {joint.name!r} mimics {current.name!r}, but {j.name!r} is {j.kind}; both must be "
                "revolute, continuous or prismatic"
            )
    return Mimic(current.name, multiplier, offset)


def note_massless(links: tuple[Link, ...], joints: tuple[Joint, ...], assumed: Assumptions) -> None:
    """Note the joints that move no mass at all, for which forward dynamics has no answer."""
    carried = [link.inertia.mass + float(link.inertia.matrix.trace()) for link in links]
    index = {link.name: i for i, link in enumerate(links)}
    for i in reversed(range(len(joints))):
        carried[index[joints[i].parent]] += carried[i + 1]
        if joints[i].nv and carried[i + 1] == 0.0 and joints[i].armature == 0.0:
            assumed.note(
                "joints that move no mass, so forward dynamics is singular (give mass or armature)", joints[i].name
            )
