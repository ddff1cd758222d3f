"""Number types of arguments: promoted as torch promotes them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from costate.core.numbers import KINDS, Typed, alike, as_tensor, checked_dtype, number_type, promoted

TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool)


@pytest.mark.parametrize("default", KINDS, ids=str)
def test_pairs_are_promoted_as_torch_does(default: torch.dtype) -> None:
    """Every pair of types, with and without dimensions; where torch gives integers, the default."""
    torch.set_default_dtype(default)
    for (a, b), (m, n) in product(product(TYPES, TYPES), product([(), (2,)], [(), (2,)])):
        x, y = torch.ones(m, dtype=a), torch.ones(n, dtype=b)
        expected = torch.result_type(x, y)
        found = {t.dtype for t in promoted([x, y])}
        assert found == {expected if expected.is_floating_point else default}, (a, m, b, n)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_plain_numbers_take_the_type_of_the_rest(kind: torch.dtype) -> None:
    """They are not rounded to float32 on the way."""
    x = torch.ones(2, dtype=kind)
    for y in (0.1, 3, True, [0.1, 0.2], (0.1, np.float32(0.2)), [[0.1], [0.2]], np.float64(0.1), np.float32(0.1)):
        both = promoted([x, y])
        assert [t.dtype for t in both] == [kind, kind]
        torch.testing.assert_close(both[1], torch.tensor(np.asarray(y, np.float64)).to(kind), rtol=0, atol=0)
    assert number_type([0.1, [1, 2]], torch.float32) == torch.float32
    assert number_type([0.1]) == torch.get_default_dtype()


def test_arrays_keep_their_type_and_are_copied() -> None:
    x = torch.ones(3, dtype=torch.float32)
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    for array in (frozen, np.arange(6.0)[::-2], np.arange(3.0).astype(">f8")):
        wide, found = promoted([x, array])
        assert wide.dtype == found.dtype == torch.float64
        assert found.tolist() == array.tolist()
    assert promoted([x, np.arange(3, dtype=np.float32)])[1].dtype == torch.float32
    array = np.zeros(3)
    as_tensor(array)[0] = 1.0
    assert array[0] == 0.0


def test_lists_of_tensors_keep_their_gradients() -> None:
    mass = torch.tensor(2.0, requires_grad=True)
    (found,) = promoted([[mass, 1.0, torch.tensor(3.0)]])
    found.sum().backward()
    assert float(mass.grad) == 1.0  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, "a", {}, object(), [[1.0], [1.0, 2.0]], [None], 1j, [torch.ones(2), 1.0]])
def test_other_things_stay(value: Any) -> None:
    x = torch.ones(2)
    assert promoted([x, value])[1] is value
    assert not alike([x, value])


def test_complex_tensors_stay() -> None:
    x, z = torch.ones(2), torch.ones(2) + 1j
    assert promoted([x, z])[1] is z and promoted([x, z])[0].dtype == x.dtype


def test_same_types_are_left_alone() -> None:
    x, y = torch.ones(2), torch.ones(())
    assert alike([x, y]) and all(a is b for a, b in zip(promoted([x, y]), [x, y], strict=True))
    assert promoted([]) == []
    assert not alike([x.long()])


def test_what_is_moved() -> None:
    class Maker(Typed):
        inside = torch.nn.Linear(1, 1)

        def _modules_inside(self) -> list[torch.nn.Module]:
            return [self.inside]

    maker = Maker()
    for kind in KINDS:
        torch.set_default_dtype(kind)
        assert maker.dtype == kind
    assert maker.float() is maker
    assert maker.dtype == maker.inside.weight.dtype == torch.float32
    assert maker.double().dtype == torch.float64
    for kind in (torch.float16, torch.int64, "float32", None):
        with pytest.raises(TypeError, match=r"expected torch\.float32 or torch\.float64"):
            checked_dtype(kind)
