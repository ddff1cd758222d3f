"""Do the tests notice? Ten places of the package are changed for the worse, one at a time, and the tests nearest to each are run.

    python -m benchmarks.study_mutants                     # the tests of this checkout
    python -m benchmarks.study_mutants --tests ../before   # those of another one, on the same changes

A change is made in a copy of the package, which the tests then import. The nearest tests are those that `make quick` chooses.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.quick import chosen

ROOT = Path(__file__).parent.parent
MUTANTS = {
    "a sign in a dual force": ("physics/algebra/spatial.py", "K[2, 1] - K[1, 2]", "K[2, 1] + K[1, 2]"),
    "a missing term of log": ("kernel/vecmath/explog.py", 'e.polynomial("log", z), -f)', 'e.polynomial("log", z), f)'),
    "a row of a scan": ("kernel/ops/scan.py", "yield t, t if self.reverse else t + 1", "yield t, t + 1"),
    "Huber's missing half": ("sim/contact/newton/cost.py", "mu[0] * (size - reach / 2)", "mu[0] * (size - reach)"),
    "the stiffness of a motor": (
        "sim/forces/actuators.py",
        "- self.stiffness * x - self",
        "+ self.stiffness * x - self",
    ),
    "heat of a knot": ("continuum/heat/laws.py", "_at(passed, self.slope) * d / 2)", "_at(passed, self.slope) * d)"),
    "stress of a cloth": ("continuum/cloth/elements.py", "C[0] * e[0] + C[1] * e[1], C[1]", "C[0] * e[0], C[1]"),
    "a pair of L-BFGS": ("optimise/lbfgs.py", "(alpha - rho * _dot(y, q))", "(alpha + rho * _dot(y, q))"),
    "an edge of the pyramid": ("sim/contact/newton/cost.py", "x[0] - m * xk)]", "x[0] + m * xk)]"),
    "rest of a URDF's origin": ("model/urdf/element.py", "else to_rpy(pose.rotation)", "else -to_rpy(pose.rotation)"),
}
"""Name -> file below src/costate, what stands there, what is put in its place."""
SECONDS = 60.0
"""Processor time of the tests that are tried for a change, as far as it is known."""


def caught(change: tuple[str, str, str], tests: Path) -> tuple[bool, str]:
    """Return whether a test fails with a change, and the first one that does."""
    file, old, new = change
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "costate"
        shutil.copytree(ROOT / "src" / "costate", package, ignore=shutil.ignore_patterns("__pycache__"))
        text = (package / file).read_text()
        if text.count(old) != 1:
            raise ValueError(
                f"{file} has {old!r} {text.count(old)} times; expected once: choose another place in MUTANTS"
            )
        (package / file).write_text(text.replace(old, new))
        run, _ = chosen([f"src/costate/{file}"], SECONDS)
        nearest = [test for test in run[3:] if (tests / test.partition("::")[0]).exists()]
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not study", "-p", "no:cacheprovider", *nearest]
        paths = os.pathsep.join([folder, str(tests)])
        done = subprocess.run(
            command, cwd=tests, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True
        )
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode == 1, failed[0].split(" - ")[0] if failed else done.stdout[-200:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=Path, default=ROOT, help="checkout whose tests are run")
    options = parser.parse_args()
    found = {}
    for name, change in MUTANTS.items():
        found[name], by = caught(change, options.tests.resolve())
        print(f"{'caught' if found[name] else 'MISSED'}  {name}: {by}", flush=True)
    print(f"{sum(found.values())} of {len(found)} caught")


if __name__ == "__main__":
    main()
