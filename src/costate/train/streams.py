"""Streams of random numbers that never meet: no training has seen what an evaluation draws."""

from __future__ import annotations

import hashlib

import torch

STREAMS = {"episodes": 0, "weights": 1, "watch": 2, "held out": 3}
"""Random numbers for: training, initial weights, the success shown while training, evaluation."""
CHUNK = 500
"""Episodes of an evaluation that are drawn and simulated together; each chunk has random numbers of its own."""


def generator(stream: str, seed: int, number: int = 0, shard: int = 0) -> torch.Generator:
    """Return the random numbers of one of the STREAMS, for an iteration or a chunk, and for a shard of it.

    torch's generator knows 2^32 seeds. Two bits of them are the stream, so that no evaluation repeats what a training saw.
    """
    name = f"{seed}:{number}:{shard}" if shard else f"{seed}:{number}"
    digest = hashlib.sha256(name.encode()).digest()
    return torch.Generator().manual_seed(4 * (int.from_bytes(digest[:4], "little") >> 2) + STREAMS[stream])
