"""A script that compiles one MJCF file for `compiled.py`, in a process of its own. It imports nothing of the package.

It gets the paths of the file and of the binary model that it leaves, and prints what it found.
"""

from __future__ import annotations

import json
import sys
import warnings

COUNTED = ("nbody", "ngeom", "njnt", "nsite", "ncam", "nlight", "nflexvert", "ntendon", "nu", "neq", "nsensor", "npair")


def main() -> None:
    """Compile the file; print the number of elements and the warnings as JSON, or the reason why it is refused."""
    import mujoco

    path, result = sys.argv[1:]
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            mj = mujoco.MjSpec.from_file(path).compile()  # pyright: ignore[reportAttributeAccessIssue]
    except ValueError as error:
        print(error)
        sys.exit(3)
    mujoco.mj_saveModel(mj, result)  # pyright: ignore[reportAttributeAccessIssue]
    elements = sum(getattr(mj, name) for name in COUNTED)
    print("\n" + json.dumps({"elements": elements, "warnings": [str(w.message) for w in found]}))


if __name__ == "__main__":
    main()
