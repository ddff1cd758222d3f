"""Messages arrive as they were sent."""

from __future__ import annotations

from pathlib import Path

import torch

from costate.scale.message import Message, files_in, write_files


def test_notes_and_tensors_keep_their_bits() -> None:
    tensors = {
        "weights": torch.tensor([[0.1, -0.0], [1e-300, float("inf")]], dtype=torch.float64),
        "flags": torch.tensor([True, False]),
        "across": torch.arange(6.0).reshape(2, 3).T,
        "none": torch.zeros(0, 3),
        "number": torch.tensor(3),
    }
    note = {"size": 3, "loss": 0.1 + 0.2, "text": "größer\n", "inner": {"a": [1, None, True]}}
    found = Message.unpacked(Message(note, tensors).packed())
    assert found.note == note
    assert found.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found.tensors[name].dtype == tensor.dtype and torch.equal(found.tensors[name], tensor)
    assert Message.unpacked(Message().packed()) == Message()


def test_files_travel_as_tensors(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(range(256)))
    (tmp_path / "empty").write_bytes(b"")
    files = Message.unpacked(Message({}, files_in(tmp_path, ("a.bin", "empty", "missing"))).packed()).tensors
    write_files(tmp_path / "there", files)
    assert (tmp_path / "there" / "a.bin").read_bytes() == bytes(range(256))
    assert (tmp_path / "there" / "empty").read_bytes() == b""
    assert not (tmp_path / "there" / "missing").exists()
