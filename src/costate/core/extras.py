"""Extras of the distribution: the message where an optional package is missing, in one wording for all errors."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

DISTRIBUTION = "costate-physics"
"""Name under which Costate is installed; it is imported as `costate`."""


def needs(what: str, package: str, extra: str) -> str:
    """Return the message of an error: "the viewer needs viser: pip install 'costate-physics[view]'"."""
    return f"{what} needs {package}: {install_command(extra)}"


def install_command(extra: str) -> str:
    """Return the command that adds an extra to the Costate that runs, from a wheel or a checkout; any folder will do."""
    folder = _checkout()
    wanted = shlex.quote(f"{folder or DISTRIBUTION}[{extra}]")
    return f"{_pip()} install {'-e ' if folder else ''}{wanted}"


def _checkout() -> Path | None:
    """Return the folder of the checkout that is installed or simply on the path, None for an installed wheel."""
    try:
        origin = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        root = Path(__file__).resolve().parents[3]
        return root if (root / "pyproject.toml").is_file() else None
    if not origin.get("dir_info", {}).get("editable"):
        return None
    return Path(url2pathname(urlsplit(origin["url"]).path))


def _pip() -> str:
    """Return `pip` if that is the one of this interpreter; an environment may be used without being active."""
    found = shutil.which("pip")
    if found and Path(found).parent == Path(sys.executable).parent:
        return "pip"
    return f"{shlex.quote(sys.executable)} -m pip"
