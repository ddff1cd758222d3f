"""Emulators of other CPUs, and a Python for ARM, in a folder of their own: nothing is installed on this machine.

Debian's packages are fetched with apt-get, for its own architecture and for arm64, and unpacked; so are the wheels for aarch64. It
takes a Debian or Ubuntu of the architecture amd64, its `apt-get` and `dpkg`, and 2 GB.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

PYTHON = "3.11"
"""Version of Debian's own Python, for which wheels are fetched."""
TORCH = "2.9.1"
"""Newest torch whose wheel for aarch64 does without libraries of a graphics card."""
PLATFORMS = [f"manylinux{glibc}_aarch64" for glibc in ("2014", "_2_17", "_2_27", "_2_28")]
WHEELS = (
    f"torch=={TORCH}", "numpy", "scipy", "casadi", "llvmlite", "lxml", "safetensors", "hypothesis", "pytest", "mpmath", "filelock",
    "typing-extensions", "sympy", "networkx", "jinja2", "fsspec", "markupsafe", "iniconfig", "pluggy", "packaging",
    "sortedcontainers", "pygments", "setuptools",
)  # fmt: skip
START = """import runpy, sys
sys.executable = {command!r}  # what starts worker processes: the emulator, and not the file that it runs
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


class Emulators:
    """The emulators in a folder; what is missing is fetched."""

    def __init__(self, folder: Path, constraints: Path):
        self.folder = folder.resolve()
        self.constraints = constraints
        self.folder.mkdir(parents=True, exist_ok=True)

    def x86(self, model: str) -> list[str]:
        """Return the command of this Python on another x86 CPU: a model that qemu knows."""
        emulator = self._qemu("qemu-x86_64-static")
        return self._command(f"x86_{model}", [str(emulator), "-cpu", model, os.path.realpath(sys.executable)])

    def arm(self) -> list[str]:
        """Return the command of a Python for aarch64."""
        emulator, root = self._qemu("qemu-aarch64-static"), self._root()
        return self._command(
            "arm", [str(emulator), "-L", str(root), "-cpu", "max", str(root / f"usr/bin/python{PYTHON}")]
        )

    def packages(self, command: list[str]) -> str:
        """Return the folder of installed packages that belongs to a command."""
        return str(self._site()) if Path(command[0]).name == "arm" else sysconfig.get_path("purelib")

    def _command(self, name: str, words: list[str]) -> list[str]:
        """Write a command as one file, which Python can start worker processes with."""
        script, start = self.folder / "bin" / name, self.folder / "bin" / f"{name}.py"
        script.parent.mkdir(exist_ok=True)
        quoted = " ".join(f"'{w}'" for w in words)
        script.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
        script.chmod(0o755)
        start.write_text(START.format(command=str(script)))
        return [str(script), "-W", "ignore", str(start)]

    def _qemu(self, name: str) -> Path:
        found = shutil.which(name)
        if found:
            return Path(found)
        emulator = self.folder / "qemu" / "usr/bin" / name
        if not emulator.exists():
            (self.folder / "debs").mkdir(exist_ok=True)
            _run("apt-get", "download", "-q", "qemu-user-static", cwd=self.folder / "debs")
            for package in (self.folder / "debs").glob("qemu-user-static*.deb"):
                _run("dpkg", "-x", str(package), str(self.folder / "qemu"))
        return emulator

    def _root(self) -> Path:
        """Return a folder with Debian's Python for arm64 and the libraries it needs."""
        root, apt = self.folder / "root", self.folder / "apt"
        if (root / f"usr/bin/python{PYTHON}").exists():
            return root
        for part in ("lists/partial", "cache/archives/partial"):
            (apt / part).mkdir(parents=True, exist_ok=True)
        (apt / "status").touch()
        settings = {
            "Dir::State": apt, "Dir::State::lists": apt / "lists", "Dir::State::status": apt / "status",
            "Dir::Cache": apt / "cache", "APT::Architecture": "arm64", "APT::Architectures": "arm64",
            "APT::Sandbox::User": "root", "Debug::NoLocking": "1",
        }  # fmt: skip
        private = ["apt-get", "-q", *(w for k, v in settings.items() for w in ("-o", f"{k}={v}"))]
        _run(*private, "update")
        wanted = (f"python{PYTHON}", "libstdc++6", "libgomp1")
        _run(*private, "install", "--download-only", "-y", "--no-install-recommends", *wanted)
        for package in (apt / "cache/archives").glob("*.deb"):
            _run("dpkg", "-x", str(package), str(root))
        return root

    def _site(self) -> Path:
        site, wheels = self.folder / "site", self.folder / "wheels"
        if site.exists():
            return site
        wheels.mkdir(exist_ok=True)
        pins = wheels / "constraints.txt"
        lines = self.constraints.read_text().splitlines()
        pins.write_text("\n".join(x for x in lines if not x.startswith("torch==")))
        options = [w for p in PLATFORMS for w in ("--platform", p)] + [
            "--only-binary=:all:",
            "--python-version",
            PYTHON,
        ]
        for wheel in WHEELS:
            command = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-c", str(pins), *options, wheel)
            _run(*command, cwd=wheels)
        for wheel in wheels.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(site)
        return site


def _run(*command: str, cwd: Path | None = None) -> None:
    print(" ".join(command), flush=True)
    subprocess.run(command, cwd=cwd, check=True)
