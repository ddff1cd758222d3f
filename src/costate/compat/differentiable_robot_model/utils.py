"""Small functions with the interface of `differentiable_robot_model.utils`.

Types and devices follow the arguments; nothing is changed in place but what is meant to be filled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from costate.robot.params import skew


def prod(l: Iterable[Any]) -> Any:
    """Return the product of all elements."""
    return math.prod(l)


def convert_into_pytorch_tensor(variable: Any) -> Tensor:
    """Return a tensor: the one given, or a new one of torch's default type."""
    if isinstance(variable, Tensor):
        return variable
    return torch.as_tensor(variable, dtype=torch.get_default_dtype()).clone()


def convert_into_at_least_2d_pytorch_tensor(variable: Any) -> Tensor:
    """Return a tensor as a batch: (n,) becomes (1, n)."""
    x = convert_into_pytorch_tensor(variable)
    return x[None] if x.dim() == 1 else x


def cross_product(vec3a: Any, vec3b: Any) -> Tensor:
    """Return a x b row by row, (batch, 3)."""
    a, b = convert_into_at_least_2d_pytorch_tensor(vec3a), convert_into_at_least_2d_pytorch_tensor(vec3b)
    return torch.linalg.cross(*torch.broadcast_tensors(a, b))


def vector3_to_skew_symm_matrix(vec3: Any) -> Tensor:
    """Return [a]x with [a]x b = a x b, (batch, 3, 3)."""
    return skew(convert_into_at_least_2d_pytorch_tensor(vec3))


def bfill_lowertriangle(A: Tensor, vec: Tensor) -> Tensor:
    """Fill what is below the diagonal of A, row by row, in place."""
    rows, columns = torch.tril_indices(A.shape[-2], A.shape[-1], -1)
    A[..., rows, columns] = vec
    return A


def bfill_diagonal(A: Tensor, vec: Tensor) -> Tensor:
    """Fill the diagonal of A, in place."""
    k = torch.arange(min(A.shape[-2:]))
    A[..., k, k] = vec
    return A


def torch_square(x: Tensor) -> Tensor:
    """Return the squares of all elements."""
    return x * x


def exp_map_so3(omega: Tensor, epsilon: float = 1.0e-14) -> Tensor:
    """Return the rotation matrix (3, 3) of a rotation vector [rad]; exact at zero too, so `epsilon` has no influence."""
    return torch.linalg.matrix_exp(skew(omega.reshape(3)))
