"""The accuracy matrix of all gradients, printed and written as a page.

    python -m benchmarks.matrix [--sample 10] [--minutes 30] [--workers 8] [--markdown docs/accuracy_matrix.md]      (`make matrix`)

The exit code is 1 if a cell is beyond its bound.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from benchmarks.matrix.matrix import make_matrix
from costate.cli.gradcheck import watch
from costate.scale.choose import Cluster


@dataclass(frozen=True)
class Options(Cluster):
    """Options of `python -m benchmarks.matrix`."""

    sample: int | None = None
    """Number of parts to compute, evenly picked; default: all of them."""
    minutes: float = float("inf")
    """Time after which no further part is begun."""
    markdown: Path | None = None
    """Page to write; the numbers go beside it as .json. A run that was interrupted continues where it stopped."""


def main(argv: Sequence[str] | None = None) -> int:
    """Compute the matrix, print it, and return 1 if a cell is beyond its bound."""
    options = tyro.cli(Options, prog="python -m benchmarks.matrix", args=argv)
    matrix = make_matrix(options.sample, options.markdown, options.minutes, watch, options)
    matrix.print()
    if options.markdown:
        print(matrix.save(options.markdown))
    return 0 if matrix.ok else 1


if __name__ == "__main__":
    sys.exit(main())
