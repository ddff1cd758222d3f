"""Values as JSON and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pytest
from casadi import SX

from costate.core.arrays import Array
from costate.sim.files.codec import INLINE, Codec, CodecError, fits
from costate.sim.files.layout import WIDTH, laid_out


@dataclass(frozen=True, eq=False)
class Thing:
    """Something with a field of every kind."""

    number: float = 1.0
    count: int = 1
    word: str | None = None
    choice: Literal["a", "b"] = "a"
    pair: tuple[float, float] = (0.0, 1.0)
    many: Sequence[float] = ()
    more: Mapping[str, float] = field(default_factory=dict)
    array: Array = field(default_factory=lambda: np.zeros(0))
    inner: Thing | None = None
    symbol: SX | None = None


def there_and_back(value: Any, shared: tuple[type, ...] = ()) -> Any:
    codec = Codec({"Thing": Thing}, shared)
    text = laid_out(codec.encode(value, "value"))
    return Codec({"Thing": Thing}, shared, arrays=codec.arrays).decode(json.loads(text), "value")


def test_every_bit_comes_back():
    random = np.random.default_rng(0)
    numbers = (0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, math.inf, -math.inf)
    large = random.normal(size=(5, INLINE))
    thing = Thing(0.1 + 0.2, 3, "\u00e9\n", "b", (1.0, -math.inf), numbers, {"x": np.float64(0.7)}, large)  # type: ignore
    thing = Thing(inner=thing, array=np.array([[1.0, math.inf], [math.nan, 1e-300]]), symbol=SX([0.1, 2.0]))
    back = there_and_back(thing)
    assert back.inner.number.hex() == (0.1 + 0.2).hex()
    assert [x.hex() for x in back.inner.many] == [x.hex() for x in numbers]
    assert (back.inner.count, back.inner.word, back.inner.choice) == (3, "\u00e9\n", "b")
    assert (back.inner.pair, back.inner.more) == ((1.0, -math.inf), {"x": 0.7})
    assert np.array_equal(back.inner.array, large)
    assert np.array_equal(back.array, thing.array, equal_nan=True)
    assert back.symbol.shape == (2, 1) and [float(x) for x in back.symbol.elements()] == [0.1, 2.0]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 1), (1, 1), (3, 2, 2)])
@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "bool"])
def test_arrays_keep_shape_and_type(shape: tuple[int, ...], kind: str):
    array = np.arange(np.prod(shape)).reshape(shape).astype(kind)
    back = there_and_back(array)
    assert (back.shape, back.dtype) == (array.shape, array.dtype)
    assert np.array_equal(back, array)


def test_shared_objects_are_the_same_again():
    thing = Thing()
    first, second = there_and_back([thing, thing], (Thing,))
    assert first is second
    first, second = there_and_back([thing, thing])
    assert first is not second


@pytest.mark.parametrize(
    "value",
    [object(), len, {1: 2}, {"$": 1}, 1j, b"bytes", np.array(["a"]), SX.sym("x"), {"a": {1, 2}}],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_refused(value: Any):
    with pytest.raises(CodecError, match="cannot be saved"):
        there_and_back(value)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (float, [1, 0.5], [True, "1", None, (1.0,)]),
        (int, [1], [1.0, True]),
        (str | None, ["a", None], [1]),
        (Literal["a", "b"], ["a"], ["c"]),
        (tuple[float, float], [(1, 2.0)], [(1.0,), (1.0, "a"), 1.0]),
        (tuple[str, ...], [(), ("a", "b")], [(1,), "a"]),
        (Sequence[float], [(), (1, 2), np.zeros(2)], ["ab", ("a",)]),
        (Mapping[str, float], [{}, {"a": 1.0}], [{"a": "b"}, ()]),
        (Array, [np.zeros(2)], [(0.0,), 1.0]),
    ],
)
def test_types_of_fields(kind: Any, good: list[Any], bad: list[Any]):
    assert all(fits(x, kind) for x in good)
    assert not any(fits(x, kind) for x in bad)


def test_lines_are_short():
    value = {"a": list(range(100)), "b": {"c": [[1.5, 2.5]] * 30, "d": "x"}, "e": []}
    text = laid_out(value)
    assert json.loads(text) == value
    assert max(map(len, text.splitlines())) <= WIDTH
    with pytest.raises(ValueError, match="JSON"):
        laid_out(math.nan)
