"""Parts to print: walls, blocks, cylinders and tubes on a base plate, each with its mesh, its tool path and its births.

The top of the base plate is at z = 0 and the part grows upwards from there, around the origin. The nodes on its surface meet its
sizes exactly; elements are about as large as asked for. The laser runs along the top of the layer that it builds, and an element is
born as the laser passes nearest to its centre. The base plate is there from the beginning: its birth is -inf.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from costate.continuum import patterns
from costate.continuum.checks import positive
from costate.continuum.deposit import Process, birth_times, path_of
from costate.continuum.mesh import EVER, HexMesh
from costate.continuum.outlines import Outline, disc, rectangle
from costate.continuum.toolpath import ToolPath


@dataclass(frozen=True)
class Plate:
    """A base plate below a part."""

    thickness: float = 0.004
    """Thickness [m]."""
    margin: float | tuple[float, float] = 0.004
    """Width by which it is larger than the part on each side [m]; for a rectangle perhaps one along x and one along y."""

    def __post_init__(self) -> None:
        positive(thickness=self.thickness)
        margins = np.asarray(self.margin, dtype=np.float64)
        if margins.shape not in ((), (2,)) or not ((margins >= 0) & (margins < np.inf)).all():
            raise ValueError(
                f"margin is {self.margin}; expected a width of 0 m or more, or one along x and one along y"
            )


PLATE = Plate()
"""Base plate of parts for which none is given."""
PROCESS = Process()
"""Motion of the laser for parts for which none is given."""


@dataclass(frozen=True, eq=False)
class Part:
    """A part to print."""

    mesh: HexMesh
    """Mesh of the base plate and the part, in the order of births."""
    path: ToolPath
    """Path of the laser, from time 0 to the end of cooling."""
    layer: NDArray[np.int64]
    """Layer of each element (E,), from 0 upwards; -1 in the base plate."""

    def __repr__(self) -> str:
        return f"Part({self.mesh!r}, {self.path!r}, {self.layer.max(initial=-1) + 1} layers)"


def wall(
    length: float = 0.04,
    height: float = 0.01,
    thickness: float = 0.002,
    element: float = 0.001,
    layer: float = 0.001,
    plate: Plate | None = PLATE,
    process: Process = PROCESS,
) -> Part:
    """Return a wall along x that is built bead on bead, forth and back.

    Args:
        length: Length along x [m].
        height: Height [m].
        thickness: Thickness along y [m]; one bead, whatever the number of elements across.
        element: Size of elements [m].
        layer: Height of a layer [m]; it has as many elements on top of each other as are about as high as wide.
        plate: Base plate; None for none.
        process: Motion of the laser.
    """
    positive(length=length, height=height, thickness=thickness)
    stack = _Stack(height, element, layer, plate, process)
    outline = rectangle((length, thickness), element, stack.margins)
    return stack.part(outline, lambda k: patterns.bead(length, k))


def block(
    size: tuple[float, float, float] = (0.02, 0.02, 0.01),
    element: float = 0.001,
    layer: float = 0.001,
    hatch: float | None = None,
    plate: Plate | None = PLATE,
    process: Process = PROCESS,
) -> Part:
    """Return a block that is filled by a raster, along x in even layers and along y in odd ones.

    Args:
        size: Extent along x, y and z [m].
        element: Size of elements [m].
        layer: Height of a layer [m].
        hatch: Distance between tracks [m], rounded so that they fill the block; None: the size of an element.
        plate: Base plate; None for none.
        process: Motion of the laser.
    """
    x, y, height = size
    positive(x=x, y=y, height=height)
    stack = _Stack(height, element, layer, plate, process)
    spacing = stack.hatch(hatch)
    return stack.part(rectangle((x, y), element, stack.margins), lambda k: patterns.raster((x, y), spacing, k))


ROUND: dict[str, Callable[[tuple[float, float], float, int], list[patterns.Track]]] = {
    "rings": patterns.rings,
    "spiral": patterns.spiral,
}
"""Patterns of tracks for round parts."""


def cylinder(
    radius: float = 0.01,
    height: float = 0.01,
    inner: float = 0.0,
    element: float = 0.001,
    layer: float = 0.001,
    pattern: str = "rings",
    plate: Plate | None = PLATE,
    process: Process = PROCESS,
) -> Part:
    """Return a cylinder around z, full or hollow, on a round base plate; tracks are an element's size apart.

    Args:
        radius: Outer radius [m].
        height: Height [m].
        inner: Inner radius [m]; 0 for a full cylinder.
        element: Size of elements [m].
        layer: Height of a layer [m].
        pattern: "rings" from outside to inside, or one "spiral" per layer, inwards and outwards in turn.
        plate: Base plate; None for none.
        process: Motion of the laser.
    """
    positive(radius=radius, height=height)
    if not 0 <= inner < radius:
        raise ValueError(
            f"inner is {inner} m and radius {radius} m; expected an inner radius from 0, for a full cylinder, to radius"
        )
    if pattern not in ROUND:
        raise ValueError(f"pattern is {pattern!r}; expected one of {', '.join(ROUND)}")
    stack = _Stack(height, element, layer, plate, process)
    if stack.margins[0] != stack.margins[1]:
        raise ValueError(f"margin is {stack.margins} m; expected one width: the plate of a cylinder is round")
    outline = disc((inner, radius), element, stack.margins[0])
    return stack.part(outline, lambda k: ROUND[pattern]((inner, radius), element, k))


def published_size() -> Part:
    """Return a part of the size of the case that Mozaffar and Cao published (arXiv 2107.10919), for comparisons of speed.

    As theirs it has 18,438 nodes and 15,070 elements, and takes 323.45 s to build and 10 s to cool. The shape is our own, a block
    on a plate with elements of 0.5 mm: their files are not part of Costate.
    """
    h = 0.0005
    size = (29 * h, 10 * h, 35 * h)
    plate = Plate(thickness=3 * h, margin=(6 * h, 15 * h))
    process = Process(speed=0.01, travel=0.05, dwell=1.711, cooling=10.0)
    return block(size, element=h, layer=h, hatch=2 * h, plate=plate, process=process)


@dataclass(frozen=True)
class _Stack:
    """Layers on a base plate."""

    height: float
    element: float
    layer: float
    plate: Plate | None
    process: Process

    def __post_init__(self) -> None:
        positive(element=self.element, layer=self.layer)

    @property
    def margins(self) -> tuple[float, float]:
        """Margins of the plate along x and y [m]."""
        x, y = np.broadcast_to(self.plate.margin if self.plate else 0.0, 2).tolist()
        return x, y

    def hatch(self, given: float | None) -> float:
        if given is None:
            return self.element
        positive(hatch=given)
        return given

    def part(self, outline: Outline, tracks: Callable[[int], list[patterns.Track]]) -> Part:
        """Return the part that stands on an outline, with a function from the number of a layer to its tracks."""
        layers, each = max(1, round(self.height / self.layer)), max(1, round(self.layer / self.element))
        z = np.linspace(0, self.height, layers * each + 1)
        path = path_of([tracks(k) for k in range(layers)], z[each::each].tolist(), self.process)
        nodes, elements = draw_up(outline.points, outline.quads[outline.part], z)
        layer = np.repeat(np.arange(layers), each * np.count_nonzero(outline.part))
        birth = birth_times(nodes[elements].mean(axis=1), nodes[elements][:, :, 2].max(axis=1), path)
        if self.plate:
            depth = self.plate.thickness
            below = np.linspace(-depth, 0, max(1, round(depth / self.element)) + 1)
            under, base = draw_up(outline.points, outline.quads, below)
            # The part stands on points of the plate's uppermost level: its own lowest level is left out.
            top = np.arange(len(under) - len(outline.points), len(under))
            nodes, elements = _joined(under, base, nodes, elements, top)
            layer = np.concatenate([np.full(len(base), -1), layer])
            birth = np.concatenate([np.full(len(base), EVER), birth])
        order = np.argsort(birth, kind="stable")
        used, new = np.unique(elements, return_inverse=True)
        mesh = HexMesh(nodes[used], new.reshape(-1, 8)[order], birth[order])
        return Part(mesh, path, layer[order])


def draw_up(points: NDArray[np.float64], quads: NDArray[np.int64], z: NDArray[np.float64]) -> tuple[NDArray, NDArray]:
    """Return nodes and elements of quadrilaterals that are drawn up through levels z [m], level by level."""
    nodes = np.concatenate([np.column_stack([points, np.full(len(points), level)]) for level in z])
    start = len(points) * np.arange(len(z) - 1)
    bottom = (start[:, None, None] + quads).reshape(-1, 4)
    return nodes, np.concatenate([bottom, bottom + len(points)], axis=1)


def _joined(under: NDArray, base: NDArray, nodes: NDArray, elements: NDArray, top: NDArray) -> tuple[NDArray, NDArray]:
    """Return plate and part with the lowest level of the part replaced by nodes of the plate's top."""
    count = len(top)
    moved = np.concatenate([top, len(under) + np.arange(len(nodes) - count)])
    return np.concatenate([under, nodes[count:]]), np.concatenate([base, moved[elements]])
