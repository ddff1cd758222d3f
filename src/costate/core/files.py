"""Files that are either whole or not there: written beside their place, then moved into it."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_origin, get_type_hints

import torch

T = TypeVar("T")


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Call write(temporary path); then the file is in its place, whole, even after a crash of the machine."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        kept = "the one there is unchanged" if path.exists() else "nothing was written"
        raise OSError(error.errno, f"cannot write {path}: {error.strerror or error}; {kept}") from error


def write_json(path: Path, value: Any) -> None:
    write_atomically(path, lambda temporary: temporary.write_text(json.dumps(value, indent=1) + "\n"))


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: it is not JSON ({error})") from error


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor], note: Mapping[str, Any] | None = None) -> None:
    """Tensors, a note about them (as JSON in the header) and a digest of both, in one safetensors file."""
    from safetensors.torch import save

    plain = {name: t.detach().contiguous() for name, t in tensors.items()}
    text = {} if note is None else {"note": json.dumps(note)}
    data = save(plain, text | {"sha256": _digest(plain, text.get("note", "{}"))})
    write_atomically(path, lambda temporary: temporary.write_bytes(data))


def read_tensors(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors and note of a file of `write_tensors`."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    data = path.read_bytes()
    try:
        tensors = load(data)  # checks the whole file
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__", {})
        note = header.get("note", "{}")
        if header.get("sha256", digest := _digest(tensors, note)) != digest:  # older files have none
            raise ValueError("its content is not what was written")
        return tensors, json.loads(note)
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _digest(tensors: Mapping[str, torch.Tensor], note: str) -> str:
    """The format itself has none: a changed bit would be a changed weight."""
    total = hashlib.sha256(note.encode())
    for name, tensor in sorted(tensors.items()):
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def from_json(kind: type[T], value: Any, path: Path) -> T:
    """A dataclass, perhaps with others in it, from what `asdict` made of it. Fields that are not there have their default."""
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected the fields of {kind.__name__}, got {value!r}")
    hints = get_type_hints(kind)
    known = {f.name for f in fields(kind)}  # pyright: ignore[reportArgumentType]
    if unknown := sorted(set(value) - known):
        raise ValueError(f"{path}: {kind.__name__} has no field {unknown[0]!r}; was this written by another version?")
    given = {name: _plain(hints[name], v, f"{path}: {kind.__name__}.{name}", path) for name, v in value.items()}
    try:
        return kind(**given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _plain(kind: Any, value: Any, where: str, path: Path) -> Any:
    if is_dataclass(kind):
        return from_json(kind, value, path)  # pyright: ignore[reportArgumentType]
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(value)
    allowed = _KINDS.get(kind, (object,))
    if (type(value) not in allowed and object not in allowed) or (isinstance(value, float) and math.isnan(value)):
        raise ValueError(f"{where} is {value!r}; expected {kind.__name__}")
    return value


_KINDS: dict[Any, tuple[type, ...]] = {int: (int,), float: (int, float), bool: (bool,), str: (str,)}
"""Type of a field -> what JSON may have for it."""
