"""A script that reads one mesh file for `files.py`, in a process of its own. It imports nothing of the package.

It gets the paths of the file and of the arrays that it leaves.
"""

from __future__ import annotations

import sys
from typing import Any


def main() -> None:
    """Read the file with trimesh, and save its vertices and triangles; print the reason if it cannot be read."""
    import numpy as np
    import trimesh

    path, result = sys.argv[1:]
    try:
        mesh: Any = trimesh.load(path, force="mesh", process=False)
        vertices, faces = np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64)
    except MemoryError:
        raise
    except Exception as error:  # its readers raise whatever comes
        print(repr(error))
        sys.exit(3)
    with open(result, "wb") as file:
        np.savez(file, vertices=vertices, faces=faces)


if __name__ == "__main__":
    main()
