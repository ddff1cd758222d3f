"""Other CPUs: whether results have the same bits there, and whether the tests pass.

    python -m benchmarks.study_cpus [--only TEXT ...] [--folder FOLDER] [--markdown docs/cpus.md]     # make study-cpus
    python -m benchmarks.study_cpus --only ARM                                                        # make study-arm

Robots and worlds (cases of `study_bits`, with gradients, in both number types) are computed by this CPU, by the same one with
shorter vectors, and by others under emulation: x86 without AVX-512, x86 without AVX, AVX2 and fused multiply-adds, and ARM. On
ARM the tests of kernels and physics and some of worlds run, too. An emulator is ten to thirty times slower than a CPU: `--minutes`
bounds the tests, and the next call goes on where they stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cpus import tests
from benchmarks.cpus.emulators import TORCH, Emulators
from benchmarks.measure.harness import ROOT, Report, Table, machine

CASES = (
    "robot ur5", "robot panda", "robot pendulum3", "landing, none, semi_implicit", "actuator dc motor",
    "landing, pgs, semi_implicit", "landing, compliant, semi_implicit", "box on heights, pgs", "smoke",
)  # fmt: skip
"""Robots with few and with many zeros and a mimic joint; worlds with a servo, joint limits and a body that flies; contact, hard and
soft, with a plane and with a height field; kernels over fields."""
TESTS = (
    "tests/physics", "tests/sim/test_known_answers.py", "tests/sim/test_rollout.py", "tests/sim/contact/test_compliant.py",
    "tests/kernel",
)  # fmt: skip
"""Tests that ARM runs, except those that compare with another engine: hours of them."""


@dataclass(frozen=True)
class Cpu:
    """A CPU, and how to get at it."""

    name: str
    model: str = ""
    """Model of qemu's x86, or "arm"; none for this CPU."""
    register: int = 0
    """Bytes of a vector, if not those that the CPU has."""


CPUS = (
    Cpu("this CPU, vectors of 32 bytes", register=32),
    Cpu("this CPU, vectors of 16 bytes", register=16),
    Cpu("x86 without AVX-512 (Haswell)", "Haswell"),
    Cpu("x86 without AVX, AVX2 and FMA (Nehalem)", "Nehalem"),
    Cpu("ARM (aarch64, NEON)", "arm"),
)


def compute(cpu: Cpu, emulators: Emulators, cases: list[str], target: Path) -> dict:
    """Return what a CPU computes, and the processor seconds it took."""
    command = [sys.executable, "-m"]
    surroundings = os.environ | {"COSTATE_CACHE": str(target.with_suffix(".cache")), "OMP_NUM_THREADS": "1"}
    packages = [str(ROOT / "src"), str(ROOT)]
    if cpu.model:
        command = emulators.arm() if cpu.model == "arm" else emulators.x86(cpu.model)
        packages.append(emulators.packages(command))
    if cpu.register:
        surroundings["COSTATE_VECTOR_BYTES"] = str(cpu.register)
    surroundings["PYTHONPATH"] = os.pathsep.join(packages)
    asked = ["benchmarks.study_bits", "--record", str(target), "--only", *cases]
    begun = spent()
    subprocess.run([*command, *asked], cwd=ROOT, env=surroundings, check=True)
    return {"cases": json.loads(target.read_text()), "seconds": spent() - begun}


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tests_on_arm(emulators: Emulators, folder: Path, chosen: list[str], minutes: float) -> str:
    """Run tests there, for a time at most; return what they say."""
    command = emulators.arm()
    packages = os.pathsep.join([str(ROOT / "src"), str(ROOT), emulators.packages(command)])
    cache = {"COSTATE_CACHE": str(folder / "tests.cache"), "OMP_NUM_THREADS": "1", "CI": "1"}
    return tests.run(command, os.environ | cache | {"PYTHONPATH": packages}, folder, chosen, minutes)


def compare(here: dict, there: dict) -> tuple[int, int, list[str]]:
    """Return the numbers of results, of those that differ, and where they do."""
    total, different = 0, []
    for name, case in here.items():
        other = there.get(name, {})
        if "error" in case or "error" in other:
            different.append(f"{name}: {other.get('error', case.get('error'))}")
            continue
        for kind, results in case.items():
            for what, (bits, size) in results.items():
                total += 1
                mine, found = other[kind][what]
                if mine != bits:
                    different.append(f"{name}, {kind}, {what}: sum of absolute values {size:.9g}, there {found:.9g}")
    return total, len(different), different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="CPUs whose name holds one of these")
    parser.add_argument("--cases", nargs="+", default=list(CASES), help="cases of study_bits")
    parser.add_argument("--tests", nargs="*", default=list(TESTS), help="tests that ARM runs")
    parser.add_argument("--minutes", type=float, default=600, help="processor time for the tests")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "cpus", help="emulators, results, logs")
    parser.add_argument("--markdown", type=Path, help="page whose section is replaced")
    options = parser.parse_args()
    emulators = Emulators(options.folder, ROOT / "constraints.txt")
    here = compute(Cpu("this CPU"), emulators, options.cases, options.folder / "here.json")["cases"]
    rows, worst = [], 0
    for cpu in (c for c in CPUS if any(text in c.name for text in options.only)):
        begun = time.time()
        found = compute(cpu, emulators, options.cases, options.folder / f"there_{cpu.model or cpu.register}.json")
        total, count, where = compare(here, found["cases"])
        print(
            f"{cpu.name}: {total} results, {count} differ; {found['seconds']:.0f} processor s, {time.time() - begun:.0f} s"
        )
        for line in where:
            print(f"  {line}")
        worst = max(worst, count)
        text = "-"
        if cpu.model == "arm" and options.tests:
            begun = spent()
            text = tests_on_arm(emulators, options.folder, options.tests, options.minutes)
            print(f"tests: {text}; {spent() - begun:.0f} processor s (log: {options.folder / 'tests.log'})")
            worst = max(worst, int(any(word in text for word in ("failed", "error", "crashed"))))
        rows.append((cpu.name, total, count, text))
    note = (
        f"Robots and worlds of `study_bits` ({len(options.cases)} cases: values, gradients, linearisations; float64 and float32), "
        f"compared bit for bit with this CPU. Emulated by qemu; torch {TORCH} on ARM."
    )
    table = Table("Same bits", ("CPU", "results", "that differ", "tests"), tuple(rows), note)
    report = Report(
        "Same bits on other CPUs", "python -m benchmarks.study_cpus --markdown docs/cpus.md", machine(), (table,)
    )
    print(report.markdown())
    if options.markdown:
        report.save_markdown(options.markdown)
    return 1 if worst else 0


if __name__ == "__main__":
    raise SystemExit(main())
