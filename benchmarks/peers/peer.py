"""The libraries to compare with: what to install for them, and how they are used. A new peer is one row and one worker script."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "workers"
TORCH = "torch==2.13.0"
"""Unpinned, some indexes answer with gigabytes of GPU packages."""


@dataclass(frozen=True)
class Peer:
    """A library that is measured."""

    name: str
    title: str
    requirements: tuple[str, ...]
    """Requirements for pip; without any it runs in the environment of Costate itself."""
    how: str
    """Description of how it is used, for the reader of a table."""
    threads: bool = False
    """True if one call may use all cores."""
    folder: Path = SCRIPTS

    @property
    def script(self) -> Path:
        """Script that runs under its interpreter; worker.py says how it answers."""
        return self.folder / f"{self.name}_worker.py"


_ROWS = (
    Peer("costate", "Costate", (), "torch calls, batched; gradients by autograd; `Hard` contact", True),
    Peer(
        "costate_newton", "Costate, MuJoCo's contact", (), "the same with `Newton` contact, the model of MuJoCo", True
    ),
    Peer(
        "pinocchio",
        "Pinocchio",
        ("pin", "numpy"),
        "`rneaInParallel` and `abaInParallel` with one thread; else a call per sample from Python; gradients are its Jacobians",
    ),
    Peer(
        "mujoco",
        "MuJoCo",
        ("mujoco", "numpy"),
        "functions: a call per sample from Python; steps: its `rollout` module, default solver (Newton); "
        "gradients: its finite "
        "differences (`mjd_inverseFD`, `mjd_transitionFD`, central), those of a roll-out multiplied backwards",
        threads=True,
    ),
    Peer(
        "pybullet",
        "PyBullet",
        ("pybullet", "numpy"),
        "a call per sample from Python; steps of one robot, whose joints are held by motors; no gradients",
    ),
    Peer(
        "drm",
        "differentiable-robot-model",
        ("differentiable-robot-model", TORCH),
        "batched torch calls, autograd; fixed bases only",
    ),
    Peer(
        "mjx",
        "MJX",
        ("mujoco-mjx", "mujoco", "jax"),
        "`jit` of `vmap`, gradients by `jax.grad` through `scan`; Newton solver with 1 iteration and 4 of its line "
        "search, as in the "
        "models it ships (more are a loop that JAX does not differentiate backwards)",
    ),
    Peer(
        "brax",
        "Brax",
        ("brax", "jax"),
        "its generalized pipeline, default solver settings; `jit` of `vmap`, gradients by `jax.grad` through `scan`",
    ),
    Peer(
        "newton",
        "Newton (Warp)",
        ("newton",),
        "on the CPU; `eval_fk`, `SolverFeatherstone` with compliant contact, a world per sample; gradients by `wp.Tape`",
    ),
    Peer(
        "nimble",
        "Nimble",
        ("nimblephysics", "numpy<2", TORCH),
        "functions: a call per sample from Python; steps of one robot; gradients by its torch layer `timestep`",
    ),
    Peer("dart", "DART", ("dartpy", "numpy"), "a call per sample from Python; steps of one robot; no gradients"),
    Peer(
        "genesis",
        "Genesis",
        ("genesis-world", TORCH),
        "on the CPU; an environment per sample; gradients by its differentiable mode",
    ),
)
PEERS: dict[str, Peer] = {row.name: row for row in _ROWS}


def chosen(names: tuple[str, ...]) -> list[Peer]:
    """Costate first, then the peers named; none named: all."""
    unknown = [n for n in names if n not in PEERS]
    if unknown:
        raise ValueError(f"unknown peer {unknown[0]!r}; the peers are {', '.join(PEERS)}")
    wanted = {"costate", *(names or PEERS)}
    return [row for row in _ROWS if row.name in wanted]
