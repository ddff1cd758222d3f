"""Tensors in safetensors files (never pickle), with a note and a checksum; where they lie in memory; and the threads that torch
computes them with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from costate.core.files import checksum, write_atomically
from costate.core.readers.text import parsed


def write_tensors(path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, Any] | None = None) -> None:
    """Write tensors, a note about them (as JSON in the header) and a checksum of both to one file, atomically."""
    from safetensors.torch import save

    plain = {name: t.detach().contiguous() for name, t in tensors.items()}
    text = {} if note is None else {"note": json.dumps(note)}
    data = save(plain, text | {"sha256": _checksum(plain, text.get("note", "{}"))})
    write_atomically(path, lambda temporary: temporary.write_bytes(data))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the note of a file that `write_tensors` wrote."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    data = path.read_bytes()
    try:
        tensors = load(data)  # checks the whole file
        header = parsed(data[8 : 8 + int.from_bytes(data[:8], "little")].decode()).get("__metadata__", {})
        text = header.get("note", "{}")
        if header.get("sha256", found := _checksum(tensors, text)) != found:  # older files have none
            raise ValueError("its content is not what was written")
        if not isinstance(note := parsed(text), dict):
            raise ValueError("its note is not one that write_tensors makes")
        return tensors, note
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _checksum(tensors: Mapping[str, Tensor], note: str) -> str:
    """Return a checksum of tensors and note. The format itself has none: a changed bit would be a changed weight."""
    parts = [note.encode()]
    for name, tensor in sorted(tensors.items()):
        parts.append(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        if tensor.numel():  # an empty one may have no strides to be seen as bytes
            parts.append(tensor.cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return checksum(*parts)


ALIGNED = 64
"""Bytes: torch allocates at multiples of it, and reads vectors no longer than it."""


def aligned(x: Tensor) -> Tensor:
    """Return a tensor whose numbers lie densely from a multiple of 64 bytes on: itself, or a copy, through which gradients pass.

    Torch's products of matrices add in another order, and so give other bits, where an operand begins at another address modulo 16:
    a view such as x[1:] does. What has to give the same bits in every process is passed through here.
    """
    if is_functorch_wrapped_tensor(x) or torch.compiler.is_compiling():  # nobody can look at the address
        return x
    return x if x.is_contiguous() and x.data_ptr() % ALIGNED == 0 else x.clone(memory_format=torch.contiguous_format)


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Let torch and the kernels compute with so many threads, inside of a with block."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
