"""Builds the documentation site: python -m docs.site [--help]"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import tyro
from docs.site.stage import ROOT, Stage


@dataclass(frozen=True)
class Options:
    """Build the documentation site into build/site. Nothing is loaded from a network, neither now nor by a reader."""

    notebooks: bool = True
    """Run the notebooks; without them, their pages say how to run them."""
    jobs: int = 2
    """Notebooks that run at the same time."""


def build(options: Options) -> Path:
    """Gather pages, run notebooks, build the site, and return its first page."""
    stage = Stage(ROOT / "build" / "docs")
    stage.gather()
    if stage.missing:
        raise SystemExit("links that lead nowhere:\n  " + "\n  ".join(stage.missing))
    from docs.site.notebooks import write_notebooks, write_sources

    if options.notebooks:
        write_notebooks(stage.out, options.jobs)
    else:
        write_sources(stage.out)
    command = [str(Path(sys.executable).parent / "zensical"), "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"NO_COLOR": "1"})
    if done.returncode or not re.search("No issues found", done.stdout + done.stderr):
        said = (done.stdout + done.stderr).partition("Traceback")[0]
        raise SystemExit(f"{said}\nthe site was not built: mend the issues above")
    return ROOT / "build" / "site" / "index.html"


def main() -> None:
    """Build the site, and say where it is."""
    begin = time.monotonic()
    page = build(tyro.cli(Options))
    print(f"{page.relative_to(ROOT)}: open it in a browser ({time.monotonic() - begin:.0f} s)")


if __name__ == "__main__":
    main()
