"""Transmissions: what an actuator of a file acts along (MJCF joint, jointinparent, tendon, site, cranksite, body)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from costate.model.transform import Transform

Rename = Callable[[str], str]

Gear = tuple[float, float, float, float, float, float]
"""Three numbers for forces [N per N], and three for torques [N m per N]."""


@dataclass(frozen=True, eq=False)
class Site:
    """A frame that is fixed to a link."""

    link: str
    pose: Transform = field(default_factory=Transform)
    """Pose in the frame of the link."""

    def renamed(self, link: Rename) -> Site:
        return replace(self, link=link(self.link))


@dataclass(frozen=True, eq=False)
class OnJoint:
    """A force along a joint. A joint with one coordinate uses the first number of the gear, a spherical one the first three."""

    joint: str
    gear: Gear
    in_parent: bool = False
    """True if torques of spherical and floating joints are in the axes of the parent link; else in those of the child."""

    def renamed(self, link: Rename, joint: Rename) -> OnJoint:
        return replace(self, joint=joint(self.joint))


@dataclass(frozen=True, eq=False)
class OnTendon:
    """A force along a tendon."""

    tendon: str
    gear: float

    def renamed(self, link: Rename, joint: Rename) -> OnTendon:
        return replace(self, tendon=joint(self.tendon))


@dataclass(frozen=True, eq=False)
class OnSite:
    """A force and a torque at a site, in its axes, or in those of a reference site, which bears the reaction."""

    site: Site
    gear: Gear
    reference: Site | None = None

    def renamed(self, link: Rename, joint: Rename) -> OnSite:
        reference = None if self.reference is None else self.reference.renamed(link)
        return replace(self, site=self.site.renamed(link), reference=reference)


@dataclass(frozen=True, eq=False)
class Crank:
    """A slider-crank: a force along the z-axis of the slider's site, which a rod leads to the crank's site."""

    crank: Site
    slider: Site
    rod: float
    """Length of the rod [m]."""
    gear: float

    def renamed(self, link: Rename, joint: Rename) -> Crank:
        return replace(self, crank=self.crank.renamed(link), slider=self.slider.renamed(link))


@dataclass(frozen=True, eq=False)
class OnBody:
    """A force that pulls a link towards all that it touches, shared by its contacts (MJCF adhesion)."""

    link: str
    gear: float

    def renamed(self, link: Rename, joint: Rename) -> OnBody:
        return replace(self, link=link(self.link))


Transmission = OnJoint | OnTendon | OnSite | Crank | OnBody
