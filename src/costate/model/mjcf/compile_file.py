"""A script that compiles one MJCF file for `compiled.py`, in a process of its own.

It gets the paths of the file and of the binary model that it leaves, and what to do about inertias that no body can have. It prints
what it found, and imports nothing of the package unless inertias are to be repaired.
"""

from __future__ import annotations

import json
import sys
import warnings

COUNTED = ("nbody", "ngeom", "njnt", "nsite", "ncam", "nlight", "nflexvert", "ntendon", "nu", "neq", "nsensor", "npair")


def main() -> None:
    """Compile the file; print the number of elements and the warnings as JSON, or the reason why it is refused."""
    import mujoco

    path, result, inertia = sys.argv[1:]
    repaired = []
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            spec = mujoco.MjSpec.from_file(path)  # pyright: ignore[reportAttributeAccessIssue]
            if inertia == "repair":
                from costate.model.mjcf.compiled import repair_inertias

                repaired = repair_inertias(spec)
            mj = spec.compile()
    except ValueError as error:
        print(error)
        sys.exit(3)
    mujoco.mj_saveModel(mj, result)  # pyright: ignore[reportAttributeAccessIssue]
    elements = sum(getattr(mj, name) for name in COUNTED)
    print("\n" + json.dumps({"elements": elements, "repaired": repaired, "warnings": [str(w.message) for w in found]}))


if __name__ == "__main__":
    main()
