"""Messages between a program and its workers: a note as JSON has it, and tensors. Plain data: no code travels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Message:
    """A note and tensors."""

    note: Mapping[str, Any] = field(default_factory=dict)
    """Numbers and texts, as JSON has them."""
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    """Tensors by name."""

    def packed(self) -> bytes:
        """Return the message as bytes, in the format of safetensors."""
        from safetensors.torch import save

        return save({k: t.detach().contiguous() for k, t in self.tensors.items()}, {"note": json.dumps(self.note)})

    @classmethod
    def unpacked(cls, data: bytes) -> Message:
        """Return the message that was packed."""
        from safetensors.torch import load

        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return cls(json.loads(header["__metadata__"]["note"]), load(data))


def files_in(folder: Path, names: tuple[str, ...]) -> dict[str, Tensor]:
    """Return the files of a folder that are there, as tensors of bytes."""
    found = {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}
    return {name: torch.from_numpy(np.frombuffer(data, np.uint8).copy()) for name, data in found.items()}


def write_files(folder: Path, files: Mapping[str, Tensor]) -> None:
    """Write files that were tensors of bytes into a folder, which is made if it is missing; each is whole or as it was."""
    from costate.core.files import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        content = data.numpy().tobytes()
        write_atomically(folder / name, lambda temporary, content=content: temporary.write_bytes(content))
