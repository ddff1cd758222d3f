"""Constants: numbers that are folded into compiled code, from whatever a user gives them as.

A tensor that requires a gradient is no constant. Taking its value would drop the gradient in silence, so it is an error that names
the input to use instead.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np


def constant(value: Any, name: str, parameter: str | None = None) -> Any:
    """Return a value with plain numbers and arrays in place of tensors and NumPy's scalars, also those within lists and tuples.

    name: what the value is, for errors; parameter: the name of the input of a world that stands for it.
    """
    if isinstance(value, float | int | str | None):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        found = [constant(x, name, parameter) for x in value]
        return value if all(a is b for a, b in zip(found, value, strict=True)) else tuple(found)
    torch: Any = sys.modules.get("torch")  # without torch there are no tensors
    if torch is None or not isinstance(value, torch.Tensor):
        return value
    if value.requires_grad:
        raise TypeError(f"{name} is a tensor that requires a gradient, but {_advice(name, parameter)}")
    found = value.detach().cpu().numpy()
    return found.item() if found.ndim == 0 else found


def settle(owner: Any, parameters: Mapping[str, str] | None = None, called: str = "") -> None:
    """Make all fields of a frozen dataclass constant. For use in __post_init__.

    parameters: field -> input of a world that stands for it; called: what the owner is called in errors.
    """
    names = parameters or {}
    for f in fields(owner):
        given = getattr(owner, f.name)
        name = f"{f.name} of {called or type(owner).__name__}"
        found = constant(given, name, names.get(f.name))
        if found is not given:
            object.__setattr__(owner, f.name, found)


def _advice(name: str, parameter: str | None) -> str:
    value = f"to use its value alone, pass {name.split()[0]}.detach()"
    if parameter is None:
        return f"it is a constant, through which no gradient flows: {value}"
    if not _is_input(parameter):
        return f"it is a constant, through which no gradient flows: {parameter}; {value}"
    return (
        f"it is a constant, through which no gradient flows: make it an input, World(parameters=['{parameter}']), and give the "
        f"tensor to each call, params={{'{parameter}': ...}}; {value}"
    )


def _is_input(parameter: str) -> bool:
    """Return whether advice is the name of an input: advice in words has spaces."""
    return " " not in parameter
