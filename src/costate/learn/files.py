"""Files that are either whole or not there: written beside their place, then moved into it."""

from __future__ import annotations

import json
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
    """Tensors and a note about them (as JSON in the header), in one safetensors file."""
    from safetensors.torch import save

    text = None if note is None else {"note": json.dumps(note)}
    data = save({name: t.detach().contiguous() for name, t in tensors.items()}, text)
    write_atomically(path, lambda temporary: temporary.write_bytes(data))


def read_tensors(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors and note of a file of `write_tensors`."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    data = path.read_bytes()
    try:
        tensors = load(data)  # checks the whole file
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return tensors, json.loads(header.get("__metadata__", {}).get("note", "{}"))
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def from_json(kind: type[T], value: Any, path: Path) -> T:
    """A dataclass, perhaps with others in it, from what `asdict` made of it. Fields that are not there have their default."""
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected the fields of {kind.__name__}, got {value!r}")
    hints = get_type_hints(kind)
    known = {f.name for f in fields(kind)}  # pyright: ignore[reportArgumentType]
    if unknown := sorted(set(value) - known):
        raise ValueError(f"{path}: {kind.__name__} has no field {unknown[0]!r}; was this written by another version?")
    return kind(**{name: _plain(hints[name], v, path) for name, v in value.items()})


def _plain(kind: Any, value: Any, path: Path) -> Any:
    if is_dataclass(kind):
        return from_json(kind, value, path)  # pyright: ignore[reportArgumentType]
    return tuple(value) if get_origin(kind) is tuple else value
