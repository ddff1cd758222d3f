"""Conjugate gradients for a batch of independent linear systems whose matrices are known only by their products."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def conjugate_gradients(
    A: Callable[[Tensor], Tensor],
    b: Tensor,
    iterations: int,
    tolerance: float,
    precondition: Callable[[Tensor], Tensor] | None = None,
    guess: Tensor | None = None,
) -> tuple[Tensor, Tensor, int]:
    """Solve A x = b, b (B, n), with A symmetric and positive definite. Systems do not mix: A maps rows to rows.

    Returns x, the residual b - A x, and the number of iterations. The iteration ends when all residuals have fallen to
    `tolerance` times |b|. A system that has reached this, or that meets a direction without curvature, is left as it is.

    precondition: Product with an approximate inverse of A, symmetric and positive definite, too: the nearer, the fewer iterations.
    guess: Where the iteration begins, (B, n), which takes one product more; None: at zero.
    """
    x, r = (torch.zeros_like(b), b.clone()) if guess is None else (guess.clone(), b - A(guess))
    z = r if precondition is None else precondition(r)
    p, rz = z.clone(), (r * z).sum(1)
    stop = tolerance**2 * (b * b).sum(1)
    going = (r * r).sum(1) > stop
    count = 0
    while count < iterations and bool(going.any()):
        count += 1
        Ap = A(p)
        curvature = (p * Ap).sum(1)
        going = going & (curvature > 0)
        step = torch.where(going, rz / torch.where(going, curvature, 1), 0)[:, None]
        x.addcmul_(step, p)
        r.addcmul_(step, Ap, value=-1)
        going = going & ((r * r).sum(1) > stop)
        z = r if precondition is None else precondition(r)
        rz, before = (r * z).sum(1), rz
        p = torch.addcmul(z, (rz / before.clamp(min=1e-300))[:, None], p)
    return x, r, count
