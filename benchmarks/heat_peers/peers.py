"""The engines that the heat step is compared with: a row for each, and a worker script next to this file."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.peer import Peer

FOLDER = Path(__file__).parent
HEAT_PEERS = {
    peer.name: peer
    for peer in (
        Peer("costate", "Costate", (), "a program over fields; 20 steps in a call, gradients by `vjp`", folder=FOLDER),
        Peer(
            "warp",
            "Warp",
            ("warp-lang==1.19.0", "numpy"),
            "on the CPU, a kernel per element and one per node, gradients by their adjoint kernels",
            folder=FOLDER,
        ),
        Peer("taichi", "Taichi", ("taichi==1.7.4", "numpy"), "on the CPU, gradients by `kernel.grad`", folder=FOLDER),
        Peer("jax", "JAX", ("jax==0.10.2", "numpy"), "`jit`, gradients by `jax.vjp`", folder=FOLDER),
        Peer("numpy", "NumPy", (), "the reference, in the environment of Costate itself", folder=FOLDER),
    )
}
"""Name -> peer; `benchmarks.peers.process.Process(peer, python)` runs it."""
