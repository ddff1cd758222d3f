"""Any module of torch is exported in one call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from costate.export import as_network, onnx_difference, write_c_header, write_onnx


def test_a_module_is_written_in_one_call(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    policy = nn.Sequential(nn.LayerNorm(7), nn.Linear(7, 16), nn.GELU(), nn.Linear(16, 2)).float()
    assert (
        "costate_policy(const COSTATE_REAL in[7], COSTATE_REAL out[2])"
        in write_c_header(policy, tmp_path / "p.h").read_text()
    )
    session = onnxruntime.InferenceSession(str(write_onnx(policy, tmp_path / "p.onnx")))
    x = torch.randn(9, 7, dtype=torch.float32)
    (found,) = session.run(None, {"measurement": x.numpy()})
    np.testing.assert_allclose(found, policy(x).detach().numpy(), rtol=0, atol=1e-6)  # of float32


def test_names_are_kept(tmp_path: Path) -> None:
    names = (("angle", "rad"), ("speed", "rad/s"))
    network = as_network(nn.Linear(2, 1), names, (("torque", "N m"),), "Holds a joint")
    text = write_c_header(network, tmp_path / "p.h").read_text()
    assert "in[1]    speed [rad/s]" in text and "out[0]   torque [N m]" in text and "Holds a joint." in text


def test_another_thing_is_refused() -> None:
    with pytest.raises(TypeError, match="not a str"):
        as_network("policy")


def test_large_outputs_are_compared_by_their_size(tmp_path: Path) -> None:
    """Outputs of 1e5 have errors of 0.01 in float32; a weight that is wrong by a thousandth is found all the same."""
    pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    first, last = nn.Linear(4, 32), nn.Linear(32, 2)
    policy = nn.Sequential(first, nn.ReLU(), last)
    with torch.no_grad():
        last.weight.mul_(1e5)
    network = as_network(policy)
    path = write_onnx(network, tmp_path / "p.onnx", "float32")
    with torch.no_grad():
        first.weight.mul_(1.001)
    assert onnx_difference(network, path) < 1e-5 < 1e-4 < onnx_difference(as_network(policy), path)
