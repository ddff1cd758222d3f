"""Growing parts for ParaView: a .vtu file for each moment, with the elements alive then, and a .pvd file that lists them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from costate.continuum.mesh import HexMesh
from costate.core.extras import needs
from costate.core.files import write_text


class VtkSeries:
    """A series of files, to which moments are added one by one:

        with VtkSeries("build.pvd", mesh) as series:
            for time, T in history:
                series.add(time, {"temperature": T})

    The files of the moments are build_0000.vtu, build_0001.vtu, ... next to it.
    """

    def __init__(self, path: str | Path, mesh: HexMesh) -> None:
        self.path, self.mesh = Path(path), mesh
        if self.path.suffix != ".pvd":
            raise ValueError(f"{path} ends with {self.path.suffix!r}; expected a name that ends with .pvd")
        _meshio()
        self.moments: list[tuple[float, str]] = []

    def add(
        self, time: float, points: Mapping[str, ArrayLike] | None = None, cells: Mapping[str, ArrayLike] | None = None
    ) -> Path:
        """Write the elements alive at a time with values at their nodes and of their own, and return the file.

        Args:
            time: Time [s], later than those added before.
            points: Name -> values at all nodes of the mesh (N,) or (N, components).
            cells: Name -> values of all elements of the mesh (E,) or (E, components). The times of birth are always written,
                as 0 for elements that are there from the beginning.
        """
        if self.moments and not time > self.moments[-1][0]:
            raise ValueError(f"time {time:g} s is added after {self.moments[-1][0]:g} s; expected ascending times")
        mesh, alive = self.mesh, self.mesh.alive(time)
        if not alive:
            raise ValueError(
                f"at {time:g} s no element is alive; the first is born at {mesh.birth.min(initial=np.inf):g} s: begin there"
            )
        used, elements = np.unique(mesh.elements[:alive], return_inverse=True)
        values = {"birth": np.where(np.isfinite(mesh.birth), mesh.birth, 0.0), **(cells or {})}
        file = self.path.with_name(f"{self.path.stem}_{len(self.moments):04d}.vtu")
        _meshio().Mesh(
            mesh.nodes[used],
            [("hexahedron", elements.reshape(-1, 8))],
            point_data={k: _rows(k, v, len(mesh.nodes), "nodes")[used] for k, v in (points or {}).items()},
            cell_data={k: [_rows(k, v, len(mesh.elements), "elements")[:alive]] for k, v in values.items()},
        ).write(file)
        self.moments.append((float(time), file.name))
        return file

    def close(self) -> None:
        """Write the .pvd file."""
        sets = "\n".join(f'    <DataSet timestep="{time!r}" part="0" file="{name}"/>' for time, name in self.moments)
        write_text(
            self.path,
            '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n  <Collection>\n'
            f"{sets}\n  </Collection>\n</VTKFile>\n",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def write_vtk(
    path: str | Path,
    mesh: HexMesh,
    times: ArrayLike,
    points: Mapping[str, ArrayLike] | None = None,
    cells: Mapping[str, ArrayLike] | None = None,
) -> Path:
    """Write a history that is held in arrays, and return the .pvd file.

    Args:
        path: Name of the .pvd file.
        mesh: Mesh.
        times: Moments (K,) [s], ascending.
        points: Name -> values at the nodes at these moments (K, N) or (K, N, components).
        cells: Name -> values of the elements at these moments (K, E) or (K, E, components).
    """
    moments = np.asarray(times, dtype=np.float64)
    for name, values in {**(points or {}), **(cells or {})}.items():
        if len(np.asarray(values)) != len(moments):
            raise ValueError(
                f"{name} has {len(np.asarray(values))} moments; expected one for each of {len(moments)} times"
            )
    with VtkSeries(path, mesh) as series:
        for k, time in enumerate(moments):
            series.add(
                float(time),
                {name: np.asarray(values)[k] for name, values in (points or {}).items()},
                {name: np.asarray(values)[k] for name, values in (cells or {}).items()},
            )
    return series.path


def _rows(name: str, values: ArrayLike, count: int, what: str) -> NDArray:
    rows = np.asarray(values)
    if rows.ndim not in (1, 2) or len(rows) != count:
        raise ValueError(f"{name} has the shape {rows.shape}; expected a row for each of {count} {what}")
    return rows


def _meshio() -> ModuleType:
    try:
        return import_module("meshio")
    except ImportError as error:
        raise ImportError(needs("writing VTK files", "meshio", "continuum")) from error
