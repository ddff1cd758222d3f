"""Networks as files: JSON says what each does, a safetensors file next to it holds the weights.

NAME.json           plans: quantity, owners, inputs, layers, constraints, units
NAME.safetensors    weights, one vector per network
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from torch import Tensor

from costate.augment.wiring import Known, Plan, Wiring, wire
from costate.core.files import write_json
from costate.core.numbers import KINDS
from costate.core.readers.text import read_json
from costate.core.tensors import read_tensors, write_tensors

FORMAT = "costate networks"
VERSION = 1
"""Version of the format: files of later ones are refused."""


def save_networks(path: str | Path, wirings: Iterable[Wiring]) -> None:
    """Write networks to PATH.json and PATH.safetensors; a path that ends in .json is the same."""
    wirings = list(wirings)
    if not wirings:
        raise ValueError("there is no network to save: add one with augment(...)")
    file = _file(path)
    write_tensors(file.with_suffix(".safetensors"), {w.name: w.network.vector() for w in wirings})
    write_json(file, {"format": FORMAT, "version": VERSION, "networks": [_note(w) for w in wirings]})


def load_networks(path: str | Path, known: Known, taken: Iterable[str] = ()) -> list[Wiring]:
    """Return the networks of files that `save_networks` wrote, wired to what is known here. taken: names of other networks."""
    file = _file(path)
    for each in (file, file.with_suffix(".safetensors")):
        if not each.is_file():
            raise FileNotFoundError(f"{each} is not there: expected the two files that save_networks writes")
    note = read_json(file)
    if not isinstance(note, dict) or note.get("format") != FORMAT:
        raise ValueError(f"{file} is not a file of networks: expected one that save_networks wrote")
    if not isinstance(version := note.get("version", 0), int) or version > VERSION:
        raise ValueError(f"{file} is of version {version}; this Costate reads versions up to {VERSION}")
    tensors, _ = read_tensors(file.with_suffix(".safetensors"))
    found, names = [], list(taken)
    try:
        for each in note["networks"]:
            wiring = wire(_checked(_plan(each), tensors), known, names)
            wiring.network.to(tensors[wiring.name].dtype)
            wiring.network.set_vector(tensors[wiring.name])
            names.append(wiring.name)
            found.append(wiring)
    except (KeyError, TypeError, AttributeError, ArithmeticError, RuntimeError, ValueError) as error:
        raise ValueError(f"{file} is damaged: {error}") from error
    return found


def _checked(plan: Plan, tensors: Mapping[str, Tensor]) -> Plan:
    """Return a plan whose layers are no larger than its weights, before memory is asked for."""
    weights, hidden = tensors[plan.name], tuple(plan.network["hidden"])
    texts = (plan.quantity, plan.name, *plan.on, *plan.inputs)
    if not all(isinstance(text, str) for text in texts) or not isinstance(plan.replace, bool):
        raise TypeError(f"network {plan.name!r} has a name that is no text, or replace={plan.replace!r}")
    if weights.dtype not in KINDS or weights.dim() != 1 or not bool(weights.isfinite().all()):
        raise ValueError(
            f"the weights of {plan.name!r} are {weights.dtype} of shape {tuple(weights.shape)}, or not finite"
        )
    if (
        not all(type(n) is int and 0 < n <= weights.numel() for n in hidden)
        or sum(a * b for a, b in pairwise(hidden)) > weights.numel()
    ):
        raise ValueError(f"the layers {str(hidden)[:60]} of {plan.name!r} do not fit its {weights.numel()} weights")
    return plan


def _file(path: str | Path) -> Path:
    """Return the JSON file of a path that a user gave."""
    return path if (path := Path(path)).suffix.lower() == ".json" else path.with_name(f"{path.name}.json")


def _note(w: Wiring) -> dict[str, Any]:
    n = w.network
    layers = {"hidden": n.hidden, "activation": n.activation, "constraints": n.constraints, "scale": n.scale}
    units = {"input_scales": dict(zip(w.inputs, n.input_scales, strict=True))}
    return asdict(replace(w.plan, name=w.name, on=w.owners, inputs=w.inputs, network=layers | units))


def _plan(note: dict[str, Any]) -> Plan:
    known = {f.name for f in fields(Plan)}
    if strange := sorted(set(note) - known):
        raise TypeError(f"a network has no '{strange[0]}'")
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in note.items()}
    return Plan(**given)
