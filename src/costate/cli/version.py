"""`costate version`: what a report of a problem or of a measurement should quote."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("torch", "casadi", "llvmlite", "numpy")


@dataclass(frozen=True)
class Options:
    pass


def run(options: Options) -> None:
    from costate import __version__

    rows = {"costate": __version__, "python": platform.python_version()}
    rows |= {name: _version(name) for name in PACKAGES}
    rows |= {"system": platform.platform(), "cpu": cpu_name(), "vectors": _vectors()}
    for name, value in rows.items():
        print(f"{name:<9} {value}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def cpu_name() -> str:
    """Return the processor as its maker calls it, where the system says so."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _vectors() -> str:
    """Return the vectors that the compiler uses."""
    from costate.kernel.machine.target import host

    target = host()
    lanes = f"{target.lanes('f64')} x float64, {target.lanes('f32')} x float32"
    return f"{8 * target.register} bits ({target.cpu}): {lanes}"
