"""Random states of robots, and how far results are apart."""

from __future__ import annotations

import numpy as np
import torch

from costate.core.arrays import Array
from costate.model import Model


def random_states(model: Model, batch: int, seed: int = 0) -> dict[str, torch.Tensor]:
    """q, v, a, tau and a wrench, float64, (batch, ...): angles and distances within +-1.5, orientations of all kinds."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.5, 1.5, (batch, model.nq))
    for joint, start in zip(model.joints, model.q_index, strict=True):
        if joint.kind in ("spherical", "floating"):
            last = slice(start + joint.nq - 4, start + joint.nq)
            q[:, last] = rng.normal(size=(batch, 4))
            q[:, last] /= np.linalg.norm(q[:, last], axis=1, keepdims=True)
    state = {"q": q, **{k: rng.normal(size=(batch, model.nv)) for k in ("v", "a", "tau")}}
    return {k: torch.from_numpy(x) for k, x in {**state, "wrench": 5 * rng.normal(size=(batch, 6))}.items()}


def relative_error(found: Array | torch.Tensor, expected: Array, scale: float = 0.0) -> float:
    """Largest difference over the largest entry expected (or `scale`, if that is more)."""
    found = np.asarray(found, float)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    size = max(np.abs(expected).max(initial=0.0), scale)
    return float(np.abs(found - expected).max(initial=0.0) / (size or 1.0))
