"""Policies of all kinds of layers, and with all kinds of forward."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

INPUTS, HIDDEN, OUTPUTS = 5, 12, 3

LAYERS: dict[str, nn.Module] = {
    "tanh": nn.Tanh(),
    "relu": nn.ReLU(inplace=True),
    "relu6": nn.ReLU6(),
    "sigmoid": nn.Sigmoid(),
    "silu": nn.SiLU(),
    "elu": nn.ELU(),
    "elu 0.5": nn.ELU(0.5),
    "celu": nn.CELU(0.7),
    "selu": nn.SELU(),
    "leaky_relu": nn.LeakyReLU(0.2),
    "prelu": nn.PReLU(HIDDEN),
    "gelu": nn.GELU(),
    "gelu tanh": nn.GELU("tanh"),
    "softplus": nn.Softplus(),
    "softplus 3": nn.Softplus(beta=3, threshold=5),
    "softsign": nn.Softsign(),
    "mish": nn.Mish(),
    "hardtanh": nn.Hardtanh(-0.5, 0.7),
    "hardswish": nn.Hardswish(),
    "hardsigmoid": nn.Hardsigmoid(),
    "logsigmoid": nn.LogSigmoid(),
    "tanhshrink": nn.Tanhshrink(),
    "threshold": nn.Threshold(0.1, -2.0),
    "softmax": nn.Softmax(-1),
    "log_softmax": nn.LogSoftmax(1),
    "norm": nn.LayerNorm(HIDDEN),
    "norm without weights": nn.LayerNorm(HIDDEN, elementwise_affine=False),
    "rms_norm": nn.RMSNorm(HIDDEN, eps=1e-5),
    "batch_norm": nn.BatchNorm1d(HIDDEN),
    "weight_norm": nn.utils.parametrizations.weight_norm(nn.Linear(HIDDEN, HIDDEN)),
    "spectral_norm": nn.utils.parametrizations.spectral_norm(nn.Linear(HIDDEN, HIDDEN)),
    "dropout": nn.Dropout(),
    "identity": nn.Identity(),
    "flatten": nn.Flatten(),
}


class Residual(nn.Module):
    """Blocks with connections around them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(INPUTS, HIDDEN)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.GELU()) for _ in range(3)
        )
        self.last = nn.Linear(HIDDEN, OUTPUTS, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = x + 0.5 * block(x)
        return self.last(x).clamp(-2, 2)


class Operations(nn.Module):
    """Slices, joins, shapes and sums."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.linspace(-1, 1, INPUTS))
        self.order = torch.tensor([3, 0, 2])
        self.layer = nn.Linear(HIDDEN, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = (x - self.mean) / 2.0
        a, b = x.split([2, 3], dim=-1)
        angles = torch.cat([a.sin(), b.cos(), torch.ones(len(x), 1, dtype=x.dtype)], 1)  # 6
        ones = torch.zeros_like(a) + a.abs().sqrt() + 1
        more = torch.cat([angles, ones, x[:, self.order], x[:, 4:]], dim=1)  # 12
        y = self.layer(more).view(x.shape[0], 2, 3)
        y = y.transpose(1, 2) @ y  # 3 x 3
        y = y - y.mean(-1, keepdim=True) + y.amax(1, keepdim=True) * y.amin((1, 2))[:, None, None]
        y = torch.where(y > 0.1, y, -y) ** 2 + y.flip(-1)
        y = torch.stack([y.sum(1), y.norm(dim=-1), torch.logsumexp(y, -1)], -1).flatten(1)  # 9
        y = F.normalize(y, dim=-1) + y.std(-1, keepdim=True)
        first, second, third = y.chunk(3, -1)
        return torch.maximum(first, second) * third.exp().clamp(max=3.0) + torch.pow(2.0, a[..., :1])


class Attention(nn.Module):
    """Attention over groups of inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(INPUTS, 4 * 6)
        self.query, self.key, self.value = (nn.Linear(6, 6) for _ in range(3))
        self.last = nn.Linear(24, OUTPUTS)

    def forward(self, x: Tensor) -> Tensor:
        tokens = torch.tanh(self.into(x)).unflatten(-1, (4, 6))
        weights = torch.softmax(self.query(tokens) @ self.key(tokens).mT / 6**0.5, -1)
        return self.last((weights @ self.value(tokens)).reshape(len(x), -1))


class Recurrent(nn.Module):
    """A GRU and an LSTM, one behind the other."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.lstm, self.last = nn.GRUCell(INPUTS, 7), nn.LSTMCell(7, 4), nn.Linear(4, OUTPUTS)
        self.start = nn.Parameter(torch.randn(7))

    def memory(self) -> tuple[Tensor, ...]:
        return self.start, torch.zeros(4), torch.zeros(4)

    def forward(self, x: Tensor, g: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        g = self.gru(x, g)
        h, c = self.lstm(g, (h, c))
        return self.last(h), g, h, c


WHOLE: dict[str, type[nn.Module]] = {
    "residual": Residual,
    "operations": Operations,
    "attention": Attention,
    "recurrent": Recurrent,
}
KINDS = [*LAYERS, *WHOLE]


def module(kind: str) -> nn.Module:
    """Return a policy with weights of order one: a module of WHOLE, or a nested chain with one of the LAYERS in it."""
    torch.manual_seed(0)
    if kind in WHOLE:
        return WHOLE[kind]().eval()
    inner = nn.Sequential(nn.Linear(INPUTS, HIDDEN, bias=False), copy.deepcopy(LAYERS[kind]))
    made = nn.Sequential(inner, nn.Linear(HIDDEN, OUTPUTS), nn.Tanh())
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(0.0, 0.7)
        if kind in ("batch_norm", "spectral_norm"):
            for _ in range(20):
                made(3 * torch.randn(100, INPUTS) + 1)  # statistics, and an estimate of the norm, of its own
    return made.eval()
