"""Parametrisations with the interface of `differentiable_robot_model.rigid_body_params`.

Their parameters have the type of the initial values given, or torch's default type. Kernels compute them: `symbolic` says the
same as `forward`.
"""

from __future__ import annotations

import math
from typing import Any

import casadi as ca
import torch
from casadi import SX
from torch import Tensor, nn

from costate.robot.params import skew


class UnconstrainedScalar(nn.Module):
    """A number."""

    def __init__(self, init_val: Tensor | None = None):
        super().__init__()
        self.param = nn.Parameter(torch.rand(1) if init_val is None else _copy(init_val))

    def forward(self) -> Tensor:
        return self.param

    def raws(self) -> tuple[Tensor]:
        return (self.param,)

    def symbolic(self, param: SX) -> SX:
        return param


class PositiveScalar(nn.Module):
    """A number l^2 + min_val."""

    def __init__(self, min_val: float = 0.0, init_param_std: float = 1.0, init_param: Tensor | float | None = None):
        super().__init__()
        self._min_val = min_val
        if init_param is None:
            start = torch.empty(1, 1).normal_(mean=0.0, std=init_param_std)
        else:
            start = torch.sqrt(_copy(init_param) - min_val)
        self.l = nn.Parameter(start.squeeze())

    def forward(self) -> Tensor:
        return (self.l * self.l + self._min_val).squeeze()

    def raws(self) -> tuple[Tensor]:
        return (self.l,)

    def symbolic(self, l: SX) -> SX:
        return l * l + self._min_val


class UnconstrainedTensor(nn.Module):
    """A matrix (dim1, dim2)."""

    def __init__(self, dim1: int, dim2: int, init_tensor: Tensor | None = None, init_std: float = 0.1):
        super().__init__()
        start = torch.empty(dim1, dim2).normal_(mean=0.0, std=init_std) if init_tensor is None else _copy(init_tensor)
        self.param = nn.Parameter(start)

    def forward(self) -> Tensor:
        return self.param

    def raws(self) -> tuple[Tensor]:
        return (self.param,)

    def symbolic(self, param: SX) -> SX:
        return param


class SymmMatNet(nn.Module):
    """Symmetric matrices from their diagonal and the entries below it, row by row: (batch, n (n + 1) / 2) -> (batch, n, n)."""

    def __init__(self, qdim: int):
        super().__init__()
        self._qdim = qdim

    def forward(self, l: Tensor) -> Tensor:
        lower = _fill(l, self._qdim)
        return lower + torch.tril(lower, -1).mT


class CholeskyNet(nn.Module):
    """Positive semi-definite matrices L L^T; `bias` is added to the diagonal of L."""

    def __init__(self, qdim: int, bias: float):
        super().__init__()
        self._qdim, self._bias = qdim, bias

    def get_raw_l(self, raw_l_input: Tensor) -> Tensor:
        return raw_l_input

    def get_l(self, raw_l_input: Tensor) -> Tensor:
        raw = self.get_raw_l(raw_l_input)
        bias = torch.zeros_like(raw)
        bias[..., : self._qdim] = self._bias
        return raw + bias

    def get_L(self, l: Tensor) -> Tensor:
        return _fill(l, self._qdim)

    def get_symm_pos_semi_def_matrix_and_l(self, raw_l_input: Tensor) -> tuple[Tensor, Tensor]:
        l = self.get_l(raw_l_input)
        L = self.get_L(l)
        return L @ L.mT, l


class _InertiaNet(CholeskyNet):
    """A positive definite matrix S = L L^T + bias 1, (3, 3), and raw numbers l with which an inertia starts."""

    def __init__(
        self,
        bias: float = 1e-7,
        init_param_std: float = 0.01,
        init_param: Tensor | None = None,
        is_initializing_params: bool = True,
    ):
        super().__init__(qdim=3, bias=0)
        self._shift = bias
        start = init_param if is_initializing_params else None
        self.l = nn.Parameter(_start(start, init_param_std, lambda I: _cholesky(self._matrix(I), bias)))

    def _matrix(self, inertia: Tensor) -> Tensor:
        """Return S of an inertia."""
        return inertia

    def _definite(self) -> Tensor:
        matrix, _ = self.get_symm_pos_semi_def_matrix_and_l(self.l[None])
        return matrix[0] + self._shift * torch.eye(3, dtype=self.l.dtype)

    def _symbolic_definite(self, l: SX) -> SX:
        L = _symbolic_fill(l)
        return L @ L.T + self._shift * SX.eye(3)

    def raws(self) -> tuple[Tensor]:
        return (self.l,)


class SymmPosDef3DInertiaMatrixNet(_InertiaNet):
    """An inertia L L^T + bias 1."""

    def forward(self) -> Tensor:
        return self._definite()

    def symbolic(self, l: SX) -> SX:
        return self._symbolic_definite(l)


class CovParameterized3DInertiaMatrixNet(_InertiaNet):
    """An inertia trace(S) 1 - S of the covariance S = L L^T + bias 1 of the mass: always possible (Wensing et al., 2017)."""

    def _matrix(self, inertia: Tensor) -> Tensor:
        return torch.trace(inertia) / 2 * torch.eye(3, dtype=inertia.dtype) - inertia

    def forward(self) -> Tensor:
        S = self._definite()
        return torch.trace(S) * torch.eye(3, dtype=self.l.dtype) - S

    def symbolic(self, l: SX) -> SX:
        S = self._symbolic_definite(l)
        return ca.trace(S) * SX.eye(3) - S


class Symm3DInertiaMatrixNet(SymmMatNet):
    """A symmetric matrix (3, 3)."""

    def __init__(
        self, init_param_std: float = 0.01, init_param: Tensor | None = None, is_initializing_params: bool = True
    ):
        super().__init__(qdim=3)
        self.l = nn.Parameter(_start(init_param if is_initializing_params else None, init_param_std, _entries))

    def forward(self) -> Tensor:  # type: ignore[override]
        return super().forward(self.l[None])[0]

    def raws(self) -> tuple[Tensor]:
        return (self.l,)

    def symbolic(self, l: SX) -> SX:
        lower = _symbolic_fill(l)
        return lower + lower.T - ca.diag(l[:3])


class TriangParam3DInertiaMatrixNet(nn.Module):
    """Principal moments J1, J2 and, as the third side of a triangle, J3; turned by a rotation vector."""

    def __init__(
        self,
        bias: float,
        init_param_std: float = 0.01,
        init_param: Tensor | None = None,
        is_initializing_params: bool = True,
    ):
        super().__init__()
        turn = torch.empty(3).normal_(mean=0.0, std=init_param_std)
        J1, J2, alpha = None, None, None
        if init_param is not None and is_initializing_params:
            turn, J1, J2, alpha = _principal(init_param, bias)
        self.inertia_ori_axis_angle = nn.Parameter(turn)
        self.J1net = PositiveScalar(min_val=bias, init_param_std=0.1, init_param=J1)
        self.J2net = PositiveScalar(min_val=bias, init_param_std=0.1, init_param=J2)
        self.alpha_param_net = UnconstrainedTensor(1, 1, init_tensor=alpha, init_std=init_param_std)

    def forward(self) -> Tensor:
        angle = math.pi * torch.sigmoid(self.alpha_param_net().squeeze())
        J1, J2 = self.J1net(), self.J2net()
        J3 = torch.sqrt(J1 * J1 + J2 * J2 - 2 * J1 * J2 * torch.cos(angle))
        R = torch.linalg.matrix_exp(skew(self.inertia_ori_axis_angle))
        return R @ torch.diag(torch.stack([J1, J2, J3])) @ R.T


def _copy(x: Any) -> Tensor:
    """Return a copy of the caller's tensor: training must not change that one."""
    return x.detach().clone() if isinstance(x, Tensor) else torch.as_tensor(x, dtype=torch.get_default_dtype())


def _start(matrix: Tensor | None, std: float, numbers: Any) -> Tensor:
    if matrix is None:
        return torch.empty(6).normal_(mean=0.0, std=std)
    return numbers(_copy(matrix).reshape(3, 3))


def _fill(l: Tensor, n: int) -> Tensor:
    """Return the lower triangular matrix of its diagonal and the entries below it, row by row."""
    rows, columns = torch.tril_indices(n, n, -1)
    both = torch.cat([torch.arange(n), rows]), torch.cat([torch.arange(n), columns])
    index = both[0] * n + both[1]
    flat = torch.zeros(*l.shape[:-1], n * n, dtype=l.dtype)
    return flat.index_copy(-1, index, l).reshape(*l.shape[:-1], n, n)


def _symbolic_fill(l: SX) -> SX:
    lower = ca.diag(l[:3])
    for k, (i, j) in enumerate(((1, 0), (2, 0), (2, 1))):
        lower[i, j] = l[3 + k]
    return lower


def _entries(A: Tensor) -> Tensor:
    rows, columns = torch.tril_indices(3, 3, -1)
    return torch.cat([torch.diag(A), A[rows, columns]])


def _cholesky(A: Tensor, bias: float) -> Tensor:
    return _entries(torch.linalg.cholesky(A - bias * torch.eye(3, dtype=A.dtype)))


def _principal(inertia: Tensor, bias: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the rotation vector, J1, J2 and the angle's inverse sigmoid."""
    J, R = torch.linalg.eigh(_copy(inertia).reshape(3, 3))
    J, R = J.flip(0), R.flip(1)
    R = R * torch.where(torch.linalg.det(R) < 0, -torch.ones(()), torch.ones(())).to(R)
    if not bool((J[:2] > bias).all()):
        raise ValueError(f"bias {bias:g} must be below the two largest principal moments, {J[0]:g} and {J[1]:g}")
    cosine = (J[0] ** 2 + J[1] ** 2 - J[2] ** 2) / (2 * J[0] * J[1])
    alpha = torch.logit(torch.arccos(cosine.clamp(-1 + 1e-9, 1 - 1e-9)) / math.pi).reshape(1, 1)
    return _rotation_vector(R), J[0], J[1], alpha


def _rotation_vector(R: Tensor) -> Tensor:
    """Return the logarithm of a rotation, by way of its quaternion."""
    _, vectors = torch.linalg.eigh(_quaternion_form(R))
    x = vectors[:, -1]
    x = x * torch.where(x[3] < 0, -1.0, 1.0)
    length = x[:3].norm()
    return 2 * torch.atan2(length, x[3]) * x[:3] / length.clamp(min=1e-30)


def _quaternion_form(R: Tensor) -> Tensor:
    """Return the symmetric matrix whose dominant eigenvector is the quaternion xyzw of R (Bar-Itzhack, 2000)."""
    K = torch.zeros(4, 4, dtype=R.dtype)
    K[:3, :3] = R + R.T - torch.trace(R) * torch.eye(3, dtype=R.dtype)
    K[:3, 3] = torch.stack([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    K[3, :3] = K[:3, 3]
    K[3, 3] = torch.trace(R)
    return K
