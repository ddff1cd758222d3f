"""Constants: numbers that are folded into compiled code, from whatever a user gives them as.

A tensor that requires a gradient is no constant. Taking its value would drop the gradient in silence, so it is an error that says
what to use instead.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

_SCALARS = ("float", "float | None", "int", "int | None")


class Constants:
    """A frozen dataclass of constants: numbers may be given as tensors or NumPy's scalars.

    A subclass with a __post_init__ of its own calls that of this class first.
    """

    def __post_init__(self) -> None:
        settle(self, self._instead())

    def _instead(self) -> Mapping[str, str]:
        """Return, by field, what to use in place of a tensor that requires a gradient: see `constant`."""
        return {}


def constant(value: Any, name: str, instead: str | None = None) -> Any:
    """Return a value with plain numbers and arrays in place of tensors and NumPy's scalars, also those within lists and tuples.

    name: what the value is, for errors; instead: what to use in place of a tensor that requires a gradient: the name of an input of
    worlds ("friction", "size:SHAPE"), or what to do in words.
    """
    if isinstance(value, float | int | str | None):
        return value
    if isinstance(value, list | tuple):
        found = [constant(x, name, instead) for x in value]
        return value if all(a is b for a, b in zip(found, value, strict=True)) else tuple(found)
    if isinstance(value, dict):
        return {key: constant(x, name, instead) for key, x in value.items()}
    found = _array(value, name, instead)
    return found.item() if isinstance(found, np.generic | np.ndarray) and found.ndim == 0 else found


def _array(value: Any, name: str, instead: str | None) -> Any:
    """Return a tensor as an array, and everything else as it is."""
    torch: Any = sys.modules.get("torch")  # without torch there are no tensors
    if torch is None or not isinstance(value, torch.Tensor):
        return value
    if value.requires_grad:
        advice = _advice(name, instead)
        raise TypeError(f"{name} is a tensor that requires a gradient, but no gradient flows through it: {advice}")
    return value.detach().cpu().numpy()


def settle(owner: Any, instead: Mapping[str, str] | None = None, called: str = "") -> None:
    """Make all fields of a frozen dataclass constant. For use in __post_init__.

    instead: what to use in place of fields that require a gradient, as in `constant`; called: name of the owner in errors.
    """
    for f in fields(owner):
        given, name = getattr(owner, f.name), f"{f.name} of {called or type(owner).__name__}"
        found = _fit(constant(given, name, (instead or {}).get(f.name)), str(f.type), name)
        if found is not given:
            object.__setattr__(owner, f.name, found)


def learnable(kind: str, owner: str) -> str:
    """Return what to do with a number of a link or joint that requires a gradient."""
    return f"learn it, robot.learn('{owner}', '{kind}', module), or make it an input, World(parameters=['{kind}:ROBOT/{owner}'])"


def _fit(value: Any, kind: str, name: str) -> Any:
    """Return an array as what a field of that type holds: one number, or a tuple of them."""
    if not isinstance(value, np.ndarray):
        return value
    if value.size == 1 and kind.startswith(("float", "int")):
        return value.item()
    if kind in _SCALARS:
        raise ValueError(f"{name} has shape {value.shape}; expected one number")
    return value if "Array" in kind or "ndarray" in kind else _tuple(value.tolist())


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _advice(name: str, instead: str | None) -> str:
    value = f"to use its value alone, pass {name.split()[0]}.detach()"
    if instead is None:
        return f"it is a constant of the compiled step; {value}"
    if " " in instead:
        return f"{instead}; {value}"
    given = f"params={{'{instead}': ...}}"
    return f"make it an input, World(parameters=['{instead}']), and give the tensor to each call, {given}; {value}"
