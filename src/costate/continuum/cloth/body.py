"""Pieces of cloth and ropes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from costate.continuum.checks import index_table, positive, rows_of_numbers

CLOTH = {
    "warp": 1000.0,
    "weft": 1000.0,
    "poisson": 0.3,
    "shear": 400.0,
    "bending": 1e-5,
    "density": 0.3,
}
"""Parameters of cloth, about those of light cotton: stiffness along warp and weft [N/m], Poisson's ratio (weft by warp), shear
modulus [N/m], bending stiffness [N m], mass per area [kg/m^2]."""
ROPE = {"stretch": 1000.0, "bending": 1e-4, "density": 0.05}
"""Parameters of a rope: stiffness E A [N], bending stiffness E I [N m^2], mass per length [kg/m]."""


@dataclass(frozen=True, eq=False)
class Cloth:
    """A piece of cloth: a mesh of triangles."""

    points: np.ndarray
    """Positions at the beginning (n, 3) [m]."""
    triangles: np.ndarray
    """Points of the triangles (m, 3), all turned the same way round."""
    parameters: dict[str, float | np.ndarray] = field(default_factory=dict)
    """Numbers that differ from those of `CLOTH`, one for all triangles or one each (m)."""
    rest: np.ndarray = None  # type: ignore[assignment]
    """Shape at rest (n, 3) [m]; None: that at the beginning."""
    warp: Sequence[float] = (1.0, 0.0, 0.0)
    """Direction of the warp in the rest shape (3)."""
    name: str = "cloth"

    def __post_init__(self) -> None:
        points = rows_of_numbers(f"points of '{self.name}'", self.points, 3, "positions [m]")
        object.__setattr__(self, "points", points)
        triangles = index_table(f"triangles of '{self.name}'", self.triangles, 3, len(points))
        object.__setattr__(self, "triangles", triangles)
        rest = points if self.rest is None else rows_of_numbers("rest", self.rest, 3, "positions [m]")
        if len(rest) != len(points):
            raise ValueError(
                f"the rest shape of '{self.name}' has {len(rest)} points; expected {len(points)}, one for each"
            )
        object.__setattr__(self, "rest", rest)
        check_parameters(self.name, self.parameters, CLOTH, len(triangles), "triangles")
        a, b, c = (rest[triangles[:, k]] for k in range(3))
        area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
        if len(area) and not area.min() > 0:
            raise ValueError(f"triangle {int(area.argmin())} of '{self.name}' has no area in the rest shape")

    @property
    def count(self) -> int:
        """Number of points."""
        return len(self.points)

    @property
    def is_flat(self) -> bool:
        """True if the rest shape lies in a plane."""
        centred = self.rest - self.rest.mean(0)
        widths = np.linalg.svd(centred, compute_uv=False)
        return bool(widths[-1] <= 1e-9 * widths[0])

    def values(self) -> dict[str, np.ndarray]:
        """Return all parameters, one number for every triangle."""
        return spread(CLOTH, self.parameters, len(self.triangles))


@dataclass(frozen=True, eq=False)
class Rope:
    """A rope: a chain of points."""

    points: np.ndarray
    """Positions at the beginning, along the rope (n, 3) [m]; distances of neighbours are lengths at rest."""
    parameters: dict[str, float | np.ndarray] = field(default_factory=dict)
    """Numbers that differ from those of `ROPE`, one for all segments or one each (n - 1)."""
    rest: np.ndarray = None  # type: ignore[assignment]
    """Shape at rest (n, 3) [m], of which only lengths count: a rope is straight at rest; None: that at the beginning."""
    name: str = "rope"

    def __post_init__(self) -> None:
        points = rows_of_numbers(f"points of '{self.name}'", self.points, 3, "positions [m]")
        if len(points) < 2:
            raise ValueError(f"'{self.name}' has {len(points)} points; a rope has two or more")
        object.__setattr__(self, "points", points)
        rest = points if self.rest is None else rows_of_numbers("rest", self.rest, 3, "positions [m]")
        if len(rest) != len(points):
            raise ValueError(f"the rest shape of '{self.name}' has {len(rest)} points; expected {len(points)}")
        object.__setattr__(self, "rest", rest)
        check_parameters(self.name, self.parameters, ROPE, len(points) - 1, "segments")
        lengths = np.linalg.norm(np.diff(rest, axis=0), axis=1)
        if not lengths.min() > 0:
            raise ValueError(f"segment {int(lengths.argmin())} of '{self.name}' has no length")

    @property
    def count(self) -> int:
        """Number of points."""
        return len(self.points)

    def values(self) -> dict[str, np.ndarray]:
        """Return all parameters, one number for every segment."""
        return spread(ROPE, self.parameters, self.count - 1)


def check_parameters(name: str, given: dict, usual: dict, count: int, of: str) -> None:
    """Raise if a parameter is unknown, or does not fit the elements."""
    for key, value in given.items():
        if key not in usual:
            raise ValueError(f"'{name}' has no parameter '{key}'; there are {', '.join(usual)}")
        shape = np.shape(value)
        if shape not in ((), (count,)):
            raise ValueError(
                f"'{key}' of '{name}' has the shape {shape}; expected a number, or one for each of {count} {of}"
            )
        if key not in ("poisson", "bending"):
            positive(**{key: float(np.min(value))})


def spread(usual: dict[str, float], given: dict, count: int) -> dict[str, np.ndarray]:
    """Return all parameters, one number for every element."""
    return {k: np.broadcast_to(np.asarray(v, float), (count,)) for k, v in (usual | given).items()}


def sheet(shape: tuple[int, int], size: tuple[float, float], **options) -> Cloth:
    """Return a rectangle of cloth in the plane z = 0, its middle at the origin.

    Args:
        shape: Points along x and y; point (i, j) has the number i * shape[1] + j.
        size: Lengths along x and y [m].
        options: Those of `Cloth`.
    """
    nx, ny = shape
    if nx < 2 or ny < 2:
        raise ValueError(f"a sheet of {nx} x {ny} points; expected 2 or more along each side")
    x, y = (np.linspace(-s / 2, s / 2, n) for s, n in zip(size, shape, strict=True))
    points = np.stack([*np.meshgrid(x, y, indexing="ij"), np.zeros((nx, ny))], -1).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(nx - 1), np.arange(ny - 1), indexing="ij")
    a = (i * ny + j).ravel()
    b, c, d = a + ny, a + ny + 1, a + 1
    even = ((i + j) % 2 == 0).ravel()[:, None]  # diagonals alternate: no direction is preferred
    first = np.where(even, np.column_stack([a, b, c]), np.column_stack([a, b, d]))
    second = np.where(even, np.column_stack([a, c, d]), np.column_stack([b, c, d]))
    triangles = np.stack([first, second], 1).reshape(-1, 3)
    return Cloth(points, triangles, **options)


def straight_rope(start: Sequence[float], end: Sequence[float], segments: int, **options) -> Rope:
    """Return a straight rope of equal segments."""
    t = np.linspace(0, 1, segments + 1)[:, None]
    return Rope((1 - t) * np.asarray(start, float) + t * np.asarray(end, float), **options)
