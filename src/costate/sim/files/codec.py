"""Frozen dataclasses as JSON and back, without any code in it.

    {"$": "Body", "name": "ball", "mass": 1.0, "shapes": [{"$": "Shape", ...}], ...}

A dataclass is an object with its class under "$", one of a table, and all of its fields; a list is a tuple; other objects are plain
mappings by name. Numbers are written with all their digits. Arrays, and numbers that are not finite, have a class of their own;
large arrays are kept apart, by name. Objects whose identity counts have a number, "#", and appear once.

Nothing is called but the constructors in the table, with values of the types that their fields have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from casadi import DM, SX

from costate.core.names import unknown

KIND, NUMBER = "$", "#"
INLINE = 64
"""Numbers of an array that is written among the rest; longer ones are kept apart."""
_DTYPES = ("float64", "float32", "int64", "int32", "bool")

Json = Any


class CodecError(ValueError):
    """An error: something cannot be written, or what was written is damaged."""


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Codec:
    """Classes that can be written, and what is kept apart."""

    classes: Mapping[str, type]
    """Name in files -> dataclass."""
    shared: tuple[type, ...] = ()
    """Classes of which the same object may be in several places, and has to be afterwards."""
    names: Mapping[str, Any] = field(default_factory=dict)
    """Further names in the annotations of their fields -> type."""
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    """Large arrays by name."""
    changed: Callable[[Any], Any] = _same
    """Change of every object before it is written, or after it was read."""
    seen: dict[int, Any] = field(default_factory=dict)
    """Shared objects: identity -> number when writing, number -> object when reading."""

    # --- writing --------------------------------------------------------------------------------------------------

    def encode(self, value: Any, where: str) -> Json:
        """Return a value as JSON has it. where: its place, for errors."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {KIND: "number", "is": str(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, SX) and value.is_constant():
            return {KIND: "SX", "of": self.encode(np.array(DM(value)), where)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, Mapping) and all(isinstance(k, str) for k in value) and KIND not in value:
            return {k: self.encode(v, f"{where}[{k!r}]") for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.encode(v, f"{where}[{k}]") for k, v in enumerate(value)]
        return self._object(value, where)

    def _array(self, value: np.ndarray, where: str) -> Json:
        if value.dtype.name not in _DTYPES:
            raise CodecError(
                f"{where} is an array of {value.dtype}, which cannot be saved: use one of {', '.join(_DTYPES)}"
            )
        if value.size <= INLINE:
            told = {} if value.dtype.name == "float64" else {"type": value.dtype.name}
            told |= {} if value.size else {"shape": list(value.shape)}
            return {KIND: "array", **told, "of": self.encode(value.tolist(), where)}
        name = f"array{len(self.arrays)}"
        self.arrays[name] = np.ascontiguousarray(value)
        return {KIND: "array", "name": name}

    def _object(self, value: Any, where: str) -> Json:
        name = next((n for n, kind in self.classes.items() if type(value) is kind), None)
        if name is None:
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            hint = (
                "a function cannot be written to a file" if callable(value) else "it is none of the classes of Costate"
            )
            raise CodecError(f"{where} is a {kind}, which cannot be saved: {hint}")
        number: dict[str, Json] = {}
        if isinstance(value, self.shared):
            if id(value) in self.seen:
                return {KIND: "again", NUMBER: self.seen[id(value)]}
            number[NUMBER] = self.seen[id(value)] = len(self.seen)
        value = self.changed(value)
        told = {f.name: self.encode(getattr(value, f.name), f"{where}.{f.name}") for f in fields(value)}
        return {KIND: name} | number | told

    # --- reading --------------------------------------------------------------------------------------------------

    def decode(self, value: Json, where: str) -> Any:
        """Return the value of what `encode` wrote. Raises CodecError where it is something else."""
        if isinstance(value, list):
            return tuple(self.decode(v, f"{where}[{k}]") for k, v in enumerate(value))
        if isinstance(value, float) and not math.isfinite(value):  # which `encode` writes in words
            raise CodecError(f"{where} is {value}; expected a finite number")
        if not isinstance(value, dict):
            return value
        if KIND not in value:
            return {k: self.decode(v, f"{where}[{k!r}]") for k, v in value.items()}
        given = {k: v for k, v in value.items() if k != KIND}
        special = _SPECIAL.get(str(value[KIND]))
        try:
            return special(self, given, where) if special else self._made(value[KIND], given, where)
        except CodecError:
            raise
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise CodecError(f"{where} is damaged: {error}") from error

    def _made(self, name: Any, given: Mapping[str, Json], where: str) -> Any:
        if name not in self.classes:
            raise CodecError(
                f"{where}: {unknown('class', str(name), self.classes)}; was this written by another version?"
            )
        kind = self.classes[name]
        types = field_types(kind, self.names)
        given = dict(given)
        number = given.pop(NUMBER, None)
        if wrong := sorted(set(given) - set(types)):
            raise CodecError(f"{where}: {name} has no field {wrong[0]!r}; was this written by another version?")
        values = {k: self.decode(v, f"{where}.{k}") for k, v in given.items()}
        for k, v in values.items():
            if not fits(v, types[k]):
                raise CodecError(f"{where}.{k} is {str(v)[:60]!r}; expected {_named(types[k])}")
        made = self.changed(kind(**values))
        if number is not None:
            self.seen[number] = made
        return made

    def _number(self, given: Mapping[str, Json], where: str) -> float:
        if given["is"] not in ("inf", "-inf", "nan"):
            raise CodecError(f"{where} is {given['is']!r}; expected inf, -inf or nan")
        return float(given["is"])

    def _values(self, given: Mapping[str, Json], where: str) -> np.ndarray:
        if "name" in given:
            if given["name"] not in self.arrays:
                raise CodecError(f"{where}: the array {given['name']!r} is not in the file of arrays")
            return self.arrays[given["name"]]
        kind = given.get("type", "float64")
        if kind not in _DTYPES:
            raise CodecError(f"{where}: {unknown('type of array', str(kind), _DTYPES)}")
        numbers = np.array(self.decode(given["of"], where))
        if numbers.size and numbers.dtype.kind not in "bif":
            raise CodecError(f"{where} is an array with something in it that is not a number")
        return numbers.astype(kind).reshape(given.get("shape", numbers.shape))

    def _again(self, given: Mapping[str, Json], where: str) -> Any:
        if given.get(NUMBER) not in self.seen:
            raise CodecError(f"{where} repeats an object that does not come before it")
        return self.seen[given[NUMBER]]

    def _symbol(self, given: Mapping[str, Json], where: str) -> SX:
        return SX(self.decode(given["of"], where))


_SPECIAL: dict[str, Callable[[Codec, Mapping[str, Json], str], Any]] = {
    "number": Codec._number,
    "array": Codec._values,
    "again": Codec._again,
    "SX": Codec._symbol,
}
"""Kind -> how it is read."""


# --- types of fields --------------------------------------------------------------------------------------------------


@cache
def _hints(kind: type, names: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return get_type_hints(kind, localns=dict(names))


def field_types(kind: type, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return field -> its type."""
    hints = _hints(kind, tuple(names.items()))
    return {f.name: hints[f.name] for f in fields(kind)}


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value is what a field of a type may hold."""
    origin, inside = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, k) for k in inside)
    if origin is Literal:
        return value in inside
    if origin is tuple and inside[-1:] != (...,):
        return isinstance(value, tuple) and len(value) == len(inside) and all(map(fits, value, inside))
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(fits(v, inside[1]) for v in value.values())
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if origin is not None and issubclass(origin, Sequence):
        numbers = isinstance(value, np.ndarray) and fits(0.0, inside[0])  # as good as a list of numbers
        return numbers or (isinstance(value, tuple) and all(fits(v, inside[0]) for v in value))
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, NoneType if kind is None else kind)


def _named(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and get_origin(kind) is None else str(kind)
