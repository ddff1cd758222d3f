"""The engines that the step of particles is compared with: a row for each, and a worker script next to this file."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.peer import Peer

FOLDER = Path(__file__).parent
MPM_PEERS = {
    peer.name: peer
    for peer in (
        Peer("costate", "Costate", (), "a program over fields; 32 steps in a call, gradients by `vjp`", folder=FOLDER),
        Peer(
            "warp",
            "Warp",
            ("warp-lang==1.19.0", "numpy"),
            "on the CPU, three kernels and their adjoints",
            folder=FOLDER,
        ),
        Peer("taichi", "Taichi", ("taichi==1.7.4", "numpy"), "on the CPU, three kernels, `kernel.grad`", folder=FOLDER),
    )
}
"""Name -> peer; `benchmarks.peers.process.Process(peer, python)` runs it."""
