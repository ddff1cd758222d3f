"""Learnable parameters of a robot: which there are, and what they are worth in a call.

A physical parameter (the mass of a link, the damping of a joint) is named by a key (kind, owner). Normally it is a number that
is folded into the compiled code. `robot.learn` puts a module in its place; the kernels compiled from then on have an input for
it. There are two ways to feed that input:

- a module that can say symbolically what it computes is folded into the kernel (`folding.py`): the input is its raw tensor;
- any other module is run before each call, perhaps on the state (q, v), and the input is the value that it returns.

`Learnables` keeps the modules of one robot as submodules, so that `robot.parameters()` and `state_dict()` see them, and finds
for every input of a kernel the tensor to pass. `version` changes with the set of modules: it is part of the key under which the
robot keeps its kernels. `identified.py` puts the present values back into a model.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from costate.core.fork import cached_property
from costate.core.names import did_you_mean
from costate.kernel.signature import Spec
from costate.model import Model
from costate.physics import Parameters
from costate.physics.params import KINDS, Key
from costate.robot.folding import is_foldable, raw_names
from costate.robot.identified import with_parameters
from costate.robot.params import Parametrisation

GROUPS: dict[str, tuple[str, ...]] = {"inertial": ("mass", "com", "inertia"), "origin": ("translation", "rotation")}
"""Parameters that one module gives together, as a tuple in this order."""

STATE = ("q", "v")
"""Arguments a module may ask for by naming them in its forward."""

ROTATION_TOLERANCE = 1e-6
"""Largest difference of R R^T from the identity."""


@dataclass(frozen=True)
class Learnable:
    """A module and the parameter that it stands for."""

    owner: str
    """Name of the link or joint; "" for gravity."""
    parameter: str
    """Parameter, a key of KINDS or GROUPS."""
    module: nn.Module

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Physical parameters that it gives."""
        return tuple((kind, self.owner) for kind in GROUPS.get(self.parameter, (self.parameter,)))

    @property
    def frozen(self) -> bool:
        return not any(p.requires_grad for p in self.module.parameters())

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the kernel inputs that it gives."""
        return tuple(map(input_name, self.keys))

    @cached_property
    def wants(self) -> tuple[str, ...]:
        """Parts of the state that its forward asks for."""
        return tuple(name for name in STATE if name in inspect.signature(self.module.forward).parameters)

    def values(self, q: Tensor | None = None, v: Tensor | None = None) -> dict[str, Tensor]:
        """Return the value of each kernel input, shape (..., *shape of the parameter)."""
        out = self.module(**{name: q if name == "q" else v for name in self.wants})
        parts = tuple(out) if isinstance(out, tuple | list) else (out,)
        if len(parts) != len(self.keys):
            raise ValueError(f"{self}: its module gave {len(parts)} values, expected {len(self.keys)}")
        return {name: self._fit(x, key[0]) for name, key, x in zip(self.inputs, self.keys, parts, strict=True)}

    def _fit(self, x: Tensor, kind: str) -> Tensor:
        shape = shape_of(kind)
        if x.shape == shape:
            return x
        if x.numel() == math.prod(shape):
            return x.reshape(shape)
        if x.shape[-len(shape) :] == shape:
            return x
        wanted = ", ".join(map(str, shape))
        raise ValueError(f"{self}: its module gave shape {tuple(x.shape)}, expected (..., {wanted})")

    def __str__(self) -> str:
        return f"learnable {self.parameter} of '{self.owner}'" if self.owner else f"learnable {self.parameter}"


def input_name(key: Key) -> str:
    """Return the name of a kernel input, as `Parameters.symbolic` names its symbols."""
    return ":".join(key).rstrip(":")


@cache
def shape_of(kind: str) -> tuple[int, ...]:
    """Return the shape of a parameter as a tensor."""
    rows, columns = KINDS[kind][1]
    return (rows,) if columns == 1 else (rows, columns)


class Learnables(nn.Module):
    """The learnable parameters of one robot. Each module is a submodule named "parameter:owner"."""

    def __init__(self, model: Model):
        super().__init__()
        self._model = model
        self._entries: dict[tuple[str, str], Learnable] = {}
        self._keys: tuple[Key, ...] = ()
        self._raws: dict[str, tuple[Learnable, int]] = {}
        self.version = 0
        """Number that changes whenever something is added or removed."""

    def __len__(self) -> int:
        return len(self._entries)

    def list(self) -> list[Learnable]:
        """Return all entries."""
        return list(self._entries.values())

    def add(self, name: str | None, parameter: str, module: nn.Module, dtype: torch.dtype | None = None) -> Learnable:
        """Replace a parameter of a link or joint by a module's output.

        dtype: number type of what is made here, the start of a module without one; None: torch's default.
        """
        owner = self._owner(name, parameter)
        if not isinstance(module, nn.Module):
            what = f"the class {module.__name__} itself" if isinstance(module, type) else f"{module!r}"
            raise TypeError(
                f"{parameter} of '{name}' is learnt by an nn.Module, such as cs.params.Positive(); given is {what}"
            )
        entry = Learnable(owner, parameter, module)
        taken = {key: e for e in self._entries.values() for key in e.keys}
        for key in entry.keys:
            if key in taken:
                raise ValueError(f"{taken[key]} is learnable already and gives {key[0]}; unlearn it first")
        if isinstance(module, Parametrisation) and module.raw is None:
            constants = [self._constant(key) for key in entry.keys]
            try:
                module.set(
                    constants[0] if len(constants) == 1 else tuple(constants), dtype or torch.get_default_dtype()
                )
            except ValueError as error:
                raise ValueError(f"{entry}: {error}") from None
        self._check(entry)
        self.add_module(_module_name(entry), module)
        self._entries[parameter, entry.owner] = entry
        self._update()
        return entry

    def remove(self, name: str | None, parameter: str) -> None:
        """Go back to the model's own value."""
        entry = self.find(name, parameter)
        delattr(self, _module_name(entry))
        del self._entries[parameter, entry.owner]
        self._update()

    def find(self, name: str | None, parameter: str) -> Learnable:
        """Return the entry of a parameter; raise KeyError if it is not learnable."""
        key = parameter, self._owner(name, parameter)
        if key not in self._entries:
            known = ", ".join(map(str, self._entries.values())) or "nothing is learnable yet"
            raise KeyError(f"{parameter} of '{name}' is not learnable; there is: {known}")
        return self._entries[key]

    def keys(self) -> tuple[Key, ...]:
        """Return all physical parameters that are learnable."""
        return self._keys

    def _update(self) -> None:
        entries = self._entries.values()
        self._keys = tuple(key for entry in entries for key in entry.keys)
        folded = [entry for entry in entries if is_foldable(entry.module)]
        self._raws = {name: (entry, k) for entry in folded for k, name in enumerate(raw_names(entry))}
        self.version += 1

    def values(self, wanted: Sequence[Spec], q: Tensor, v: Tensor | None) -> list[Tensor]:
        """Return the values of a kernel's inputs, in order: raw tensors of modules that are folded in, else the parameters.

        Modules that are not needed are not run.
        """
        found: dict[str, Tensor] = {}
        values = []
        for spec in wanted:
            source = self._raws.get(spec.name)
            if source is not None:
                entry, k = source
                x = entry.module.raws()[k]  # type: ignore[operator]
                x = x if x.shape == spec.shape or not x.dim() else x.reshape(spec.shape)
            else:
                if spec.name not in found:
                    found.update(next(e for e in self._entries.values() if spec.name in e.inputs).values(q, v))
                x = found[spec.name]
            values.append(x)
        return values

    def model(self) -> Model:
        """Return the robot with its parameters as they are now."""
        values: dict[Key, np.ndarray] = {}
        for entry in self._entries.values():
            if entry.wants:
                raise ValueError(f"{entry} depends on the state: it has no single value that a robot file could hold")
            with torch.no_grad():
                found = entry.values()
            for key in entry.keys:
                x = found[input_name(key)]
                if x.shape != shape_of(key[0]):
                    raise ValueError(
                        f"{entry} differs per sample, shape {tuple(x.shape)}: a robot file holds one value"
                    )
                values[key] = x.double().numpy()
        return with_parameters(self._model, values)

    def _owner(self, name: str | None, parameter: str) -> str:
        """Return the link or joint that is meant. A joint may be named by the link it moves."""
        kind = GROUPS.get(parameter, (parameter,))[0]
        if kind not in KINDS:
            known = [*KINDS, *GROUPS]
            hint = did_you_mean(parameter, known)
            raise ValueError(f"there is no parameter '{parameter}'; {hint or 'learnable are ' + ', '.join(known)}")
        what = KINDS[kind][0]
        if what == "model":
            return ""
        if what == "link":
            known = [link.name for link in self._model.links]
        else:
            known = [joint.name for joint in self._model.joints]
            moved = {joint.child: joint.name for joint in self._model.joints}
            name = name if name in known else moved.get(str(name), name)
        if name not in known:
            raise ValueError(
                f"robot '{self._model.name}' has no {what} '{name}' whose {parameter} could be learnt; "
                f"it has {', '.join(known)}"
            )
        return str(name)

    def present(self, key: Key) -> Tensor:
        """Return the value of a parameter now: what its module gives, or the model's own number (float64)."""
        for entry in self._entries.values():
            if key in entry.keys:
                return entry.values()[input_name(key)]
        return self._constant(key)

    def _constant(self, key: Key) -> Tensor:
        return torch.as_tensor(Parameters.of(self._model).number(key)).reshape(shape_of(key[0]))

    def _check(self, entry: Learnable) -> None:
        """Check what can be known before the first call: shapes, and that rotations are rotations."""
        if entry.wants:
            return
        required = [
            p.name
            for p in inspect.signature(entry.module.forward).parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        if required:
            raise ValueError(
                f"{entry}: its module's forward asks for {', '.join(required)}; it may ask for q and v, by these names "
                "(cs.params.OfState wraps a network of the state)"
            )
        with torch.no_grad():
            found = entry.values()
        for key in entry.keys:
            R = found[input_name(key)]
            if key[0] == "rotation" and not _is_rotation(R):
                raise ValueError(f"{entry}: its module does not give rotation matrices; use cs.params.Rotation()")


def _module_name(entry: Learnable) -> str:
    return input_name((entry.parameter, entry.owner)).replace(".", "_")


def _is_rotation(R: Tensor) -> bool:
    R = R.double()
    off = (R @ R.mT - torch.eye(3, dtype=R.dtype)).abs().max()
    return float(off) < ROTATION_TOLERANCE and bool((torch.linalg.det(R) > 0).all())
