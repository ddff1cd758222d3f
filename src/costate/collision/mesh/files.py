"""Mesh files: triangles to draw, hulls, distance grids, and convex parts. What takes long is made once and kept on disk."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costate.collision.mesh.declared import check_declared
from costate.collision.mesh.fields import Grid
from costate.collision.mesh.hull import VERTICES, Hull, hull_of
from costate.collision.mesh.triangles import Mesh, creased
from costate.collision.mesh.unpacked import check_mesh_file
from costate.core.arrays import Array
from costate.core.confined import RefusedError, run_confined
from costate.core.extras import needs
from costate.core.files import checksum, seal, unseal, write_private
from costate.core.reach import problem
from costate.kernel.machine.cache import cache_path

CELLS = 24
"""Cells of a grid along its longest side, unless told."""
AROUND = 3
"""Cells of a grid beyond the mesh on every side."""
SCRIPT = Path(__file__).with_name("read_file.py")
TRIANGLES = 40_000
"""Mesh files with more triangles are drawn as their convex hull: a page has to carry them."""


_HERE = {
    ".stl": {},
    ".obj": {"skip_materials": True},
    ".ply": {},
    ".off": {},
    ".dae": {},
    ".glb": {"skip_materials": True},
    ".gltf": {"skip_materials": True},
}
"""Options of trimesh, by the endings of the files that are read in this process; others are read in one of their own."""


@cache
def load_triangles(path: Path) -> tuple[Array, NDArray[np.int64]]:
    """Return vertices (n, 3) and triangles (m, 3) of an STL, OBJ, DAE, PLY or glTF file."""
    try:
        import trimesh
    except ImportError as error:
        raise ImportError(needs(f"reading the mesh {path.name}", "trimesh", "mesh")) from error
    check_mesh_file(path)
    check_declared(path)
    mesh = _read_here(path) if path.suffix.lower() in _HERE else _read_apart(path)
    if not isinstance(mesh, trimesh.Trimesh) or not len(mesh.faces):
        raise ValueError(f"{path} holds no triangles")
    if mesh.vertices.shape[1:] != (3,) or mesh.faces.shape[1:] != (3,):
        raise ValueError(f"{path} is damaged: corners and triangles have 3 numbers each, not {mesh.vertices.shape[1:]}")
    if mesh.faces.min() < 0 or mesh.faces.max() >= len(mesh.vertices) or not np.isfinite(mesh.triangles).all():
        raise ValueError(f"{path} is damaged: it has corners that are not finite or not there")
    mesh.merge_vertices()
    return np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64)


def _read_here(path: Path) -> Any:
    import trimesh

    try:
        # With process=True, what is not finite would be left out.
        options = _HERE[path.suffix.lower()]
        return trimesh.load(str(path), force="mesh", process=False, resolver=_regular_files_beside(path), **options)
    except Exception as error:  # its readers raise whatever comes
        raise ValueError(f"{path} is damaged, or no STL, OBJ, DAE, PLY or glTF file: {error!r}") from error


def _read_apart(path: Path) -> Any:
    """Read an archive or a file of a rare kind, whose cost nothing tells beforehand, in a process of its own."""
    import trimesh

    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "mesh.npz"
        try:
            run_confined(SCRIPT, [path, result])
        except RefusedError as error:
            raise ValueError(f"{path} is damaged, or no STL, OBJ, DAE, PLY or glTF file: {error}") from error
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        with np.load(result, allow_pickle=False) as found:
            return trimesh.Trimesh(found["vertices"], found["faces"], process=False)


def _regular_files_beside(path: Path) -> Any:
    """Return what finds the files that a mesh file names (materials, buffers): regular ones in its folder or below."""
    from trimesh.resolvers import FilePathResolver

    class Regular(FilePathResolver):
        def get(self, name: str) -> Any:
            place = Path(self.parent) / name.strip()
            if wrong := problem(place, [Path(self.parent)]):
                raise ValueError(f"{name[:60]!r} {wrong}")
            check_mesh_file(place)
            return super().get(name)

    return Regular(str(path))


def mesh_from_file(path: Path) -> Mesh:
    """Return the triangles of a mesh file, for pictures."""
    vertices, faces = load_triangles(path)
    if len(faces) > TRIANGLES:
        import trimesh

        hull = trimesh.Trimesh(vertices, faces).convex_hull
        vertices, faces = np.asarray(hull.vertices, float), np.asarray(hull.faces)
    return creased(vertices, faces)


@cache
def hull_of_file(path: Path, scale: tuple[float, float, float], limit: int = VERTICES) -> Hull:
    """Return the convex hull of a mesh."""
    return hull_of(load_triangles(path)[0] * np.array(scale), limit, path.name)


@cache
def grid_of_file(path: Path, scale: tuple[float, float, float], cells: int = CELLS) -> Grid:
    """Return the signed distances of a mesh (closed, or nearly so) on a grid."""
    vertices, faces = load_triangles(path)
    return grid_of(vertices * np.array(scale), faces, cells)


def grid_of(vertices: Array, faces: NDArray[np.int64], cells: int = CELLS) -> Grid:
    low, high = vertices.min(0), vertices.max(0)
    spacing = float((high - low).max() / cells)
    counts = np.ceil((high - low) / spacing).astype(int) + 1 + 2 * AROUND
    origin = (low + high) / 2 - (counts - 1) * spacing / 2
    key = checksum(b"grid 2", vertices.tobytes(), faces.tobytes(), str(cells).encode())
    values = _kept(f"{key}.grid", lambda: _sampled(vertices[faces], origin, counts, spacing))
    return Grid(0.0, values, origin, spacing)


def _sampled(triangles: Array, origin: Array, counts: Array, spacing: float) -> Array:
    axes = [origin[k] + spacing * np.arange(counts[k]) for k in range(3)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    # Small pieces stay in the cache of a core.
    chunk = max(1, 50_000 // len(triangles))
    return np.concatenate(
        [signed_distance(points[k : k + chunk], triangles) for k in range(0, len(points), chunk)]
    ).reshape(*counts)


def signed_distance(points: Array, triangles: Array) -> Array:
    """Return the distances (n,) of points (n, 3) to triangles (m, 3, 3), negative where the winding number (van Oosterom and
    Strackee, 1983) is above 1/2."""
    corners = triangles[None] - points[:, None, None]  # (n, m, 3, 3)
    a, b, c = (corners[:, :, k] for k in range(3))
    la, lb, lc = (np.linalg.norm(x, axis=-1) for x in (a, b, c))
    ab, bc, ca = (np.einsum("nmi,nmi->nm", u, v) for u, v in ((a, b), (b, c), (c, a)))
    volume = np.einsum("nmi,nmi->nm", a, np.cross(b, c))
    winding = 2 * np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb)
    inside = np.abs(winding.sum(1)) / (4 * np.pi) > 0.5
    nearest = np.min([_to_segment(u, v) for u, v in ((a, b), (b, c), (c, a))], axis=0)
    normal = np.cross(b - a, c - a)
    square = np.maximum(np.einsum("nmi,nmi->nm", normal, normal), 1e-300)
    over = np.ones_like(la, bool)
    for u, v in ((b, c), (c, a), (a, b)):
        over &= np.einsum("nmi,nmi->nm", normal, np.cross(u, v)) >= 0
    height = np.abs(volume) / np.sqrt(square)
    distance = np.where(over, height, nearest).min(1)
    return np.where(inside, -distance, distance)


def _to_segment(u: Array, v: Array) -> Array:
    along = v - u
    share = -np.einsum("nmi,nmi->nm", u, along) / np.maximum(np.einsum("nmi,nmi->nm", along, along), 1e-300)
    return np.linalg.norm(u + np.clip(share, 0, 1)[..., None] * along, axis=-1)


def _kept(name: str, make: Callable[[], Array]) -> Array:
    """Return an array from the cache folder, or make it and put it there."""
    folder = cache_path()
    file = folder and folder / "meshes" / name
    found = _read(file) if file else None
    if found is not None:
        return found
    values = make()
    if file:
        _write(file, values)
    return values


def _read(file: Path) -> Array | None:
    """Return an array from a file, or None if there is none or it is not what was written."""
    try:
        return np.load(io.BytesIO(unseal(file.read_bytes())), allow_pickle=False)
    except (OSError, ValueError):
        return None


def _write(file: Path, values: Array) -> None:
    """Write a checksum and the array, atomically; a folder that cannot be written to only costs time."""
    data = io.BytesIO()
    np.save(data, values, allow_pickle=False)
    with suppress(OSError):
        write_private(file, seal(data.getvalue()))


def convex_parts(path: Path, threshold: float = 0.05, parts: int = -1) -> list[Path]:
    """Return files of convex parts that together make up a mesh, by CoACD (Wei et al., 2022), made once.

    threshold: concavity that is left [-], 0.01 (many parts) to 1; parts: at most so many, -1 for no limit.
    """
    vertices, faces = load_triangles(path)
    key = checksum(f"parts 2 {threshold} {parts}".encode(), vertices.tobytes(), faces.tobytes())
    folder = (cache_path() or Path(tempfile.gettempdir()) / "costate") / "meshes" / f"{path.stem}-{key[:16]}"
    found = _whole(folder)
    if found is None:
        _decompose(vertices, faces, threshold, parts, folder)
        found = _whole(folder)
    if found is None:
        raise OSError(f"the convex parts of {path.name} could not be kept in {folder}: is the disk full?")
    return found


def _whole(folder: Path) -> list[Path] | None:
    """Return the parts in a folder, or None if they are not what was written."""
    try:
        lines = [line.split() for line in (folder / "parts").read_text().splitlines()]
        whole = all(checksum((folder / name).read_bytes()) == digest for digest, name in lines)
    except (OSError, ValueError):
        return None
    return [folder / name for _, name in lines] if lines and whole else None


def _decompose(vertices: Array, faces: NDArray[np.int64], threshold: float, parts: int, folder: Path) -> None:
    try:
        import coacd
    except ImportError as error:
        raise ImportError(needs("convex decomposition", "coacd", "decompose")) from error
    coacd.set_log_level("error")
    found = coacd.run_coacd(
        coacd.Mesh(vertices, faces.astype(np.int32)), threshold=threshold, max_convex_hull=parts, seed=0
    )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    listed = []
    for k, (corners, triangles) in enumerate(found):
        lines = [f"v {x:.17g} {y:.17g} {z:.17g}" for x, y, z in corners]
        lines += [f"f {i + 1} {j + 1} {m + 1}" for i, j, m in triangles]
        text = "\n".join(lines) + "\n"
        (folder / f"part{k:03d}.obj").write_text(text, newline="\n")
        listed.append(f"{checksum(text.encode())} part{k:03d}.obj\n")
    (folder / "parts").write_text("".join(listed))
