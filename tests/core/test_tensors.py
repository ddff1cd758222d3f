"""Files of tensors: what was written is read, and a changed bit is found."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from costate.core.tensors import read_tensors, write_tensors


def test_tensors_and_note_survive(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6.0).reshape(2, 3).T, "b": torch.tensor(3), "c": torch.zeros(0, dtype=torch.float64)}
    write_tensors(tmp_path / "t.safetensors", tensors, {"steps": 4})
    found, note = read_tensors(tmp_path / "t.safetensors")
    assert note == {"steps": 4} and found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor)


def test_a_changed_weight_is_found(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    write_tensors(path, {"a": torch.ones(8)})
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"t\.safetensors is damaged: its content is not what was written"):
        read_tensors(path)
