"""The contacts of a world's states, as tensors."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Contacts:
    """Contact points and forces for a batch of states."""

    pairs: list[tuple[str, str]]
    """Links of each contact point; "world" for scenery."""
    shapes: list[tuple[str, str]]
    """Names of the shapes of each contact point."""
    points: Tensor
    """Contact points, world axes [m], (..., n, 3)."""
    normals: Tensor
    """Normals from the second link to the first, (..., n, 3)."""
    gaps: Tensor
    """Gaps [m], negative where shapes overlap, (..., n)."""
    forces: Tensor
    """Normal forces [N] during the next substep, (..., n); along the normal on the first link, against it on the second."""
    friction: Tensor
    """Friction forces [N] on the first link, world axes, (..., n, 3)."""
    torques: Tensor
    """Torques of torsional and rolling friction [N m] on the first link, world axes, (..., n, 3); only `Newton` has them."""
    residual: Tensor
    """Residual that the solver left, (...,). Hard: largest speed [m/s or rad/s] by which a row misses its law (those of Signorini
    and Coulomb for contacts); PGS: largest speed by which one more sweep would change a row; Newton: largest generalised force
    [N or N m] that is not balanced; else 0."""
