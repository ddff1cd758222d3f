"""Costate with the contact model of MuJoCo: steps and roll-outs."""

from __future__ import annotations

import costate_worker  # pyright: ignore[reportMissingImports]
from worker import serve  # pyright: ignore[reportMissingImports]

import costate as cs

if __name__ == "__main__":
    costate_worker.contact = lambda friction: cs.Newton(friction=friction)
    serve(costate_worker.VERSIONS, "float64", costate_worker.SIMULATION)
