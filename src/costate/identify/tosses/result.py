"""The result of an identification from tosses: numbers with intervals, and errors of predicted tosses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from costate.core.arrays import Array
from costate.identify.noise.correlated import intervals
from costate.identify.tosses.fit import Raws, distances
from costate.identify.tosses.log import Tosses
from costate.identify.tosses.thrown import UNKNOWNS, Thrown, parameter, values
from costate.sim.world import World


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of predicted tosses, over the rows that the prediction has not seen."""

    shift: Array
    """Distance of positions, relative to the width of the body, shape (rows, n)."""
    turn: Array
    """Angle between rotations [deg], shape (rows, n)."""

    def row(self) -> dict[str, float]:
        """Return mean errors over time and tosses, at the end, and the median of tosses."""
        return {
            "position, mean [% of width]": 100 * float(self.shift.mean()),
            "rotation, mean [deg]": float(self.turn.mean()),
            "position, end [%]": 100 * float(self.shift[-1].mean()),
            "rotation, end [deg]": float(self.turn[-1].mean()),
            "rotation, median toss [deg]": float(np.median(self.turn.mean(0))),
        }


def errors_of(states: Tensor, rows: Tensor, length: float, seen: int = 0) -> Errors:
    """Return the errors of states (T, n, 13) after the first rows, which were seen."""
    shift, turn = distances(states[seen:], rows[seen:], length)
    # A state that is not finite counts as a width and half a turn.
    return Errors(shift.nan_to_num(nan=1.0).numpy(), torch.rad2deg(turn.nan_to_num(nan=np.pi)).numpy())


@dataclass(frozen=True, eq=False)
class TossResult:
    """The result of `identify_tosses`."""

    thrown: Thrown
    """Body as it was given."""
    contact: str
    world: World
    """World whose parameters are the unknowns."""
    raws: Raws
    """Unknowns found, as raw numbers."""
    covariance: Tensor
    """Covariance of the raw numbers, in their order, from the scatter between tosses."""
    tosses: Tosses
    train: Array
    """Tosses that were fitted."""
    test: Array
    """Tosses that were held out."""
    errors: dict[str, Errors]
    """Errors in the tosses held out, by what was predicted from what."""
    predicted: Tensor
    """States predicted in the tosses held out, by the parameters found, from the first row; shape (T, n, 13)."""
    losses: list[float] = field(default_factory=list)
    """Loss of each iteration."""
    seconds: float = 0.0
    """Processor time of the fit [s]."""
    augmented: World | None = None
    """World with networks on its contacts, with the weights found, if any were asked for."""
    learnt: Raws = field(default_factory=dict)
    """Raw numbers found together with the networks, and their weights by "network:NAME"; the numbers above are those without."""

    @property
    def values(self) -> dict[str, Array]:
        """Numbers found, by the names of unknowns."""
        found = values(self.world, self.raws, self.thrown.length)
        return {name: _shown(name, found[parameter(name)]).numpy() for name in self.raws}

    @property
    def half_widths(self) -> dict[str, Array]:
        """Half widths of 95 % intervals of the numbers, likewise; linear in the raw numbers."""
        sizes, found = [raw.numel() for raw in self.raws.values()], {}

        def number(name: str, flat: Tensor) -> Tensor:
            named = dict(zip(self.raws, flat.split(sizes), strict=True))
            return _shown(name, values(self.world, {name: named[name]}, self.thrown.length)[parameter(name)])

        flat = torch.cat(list(self.raws.values()))
        for name in self.raws:
            J = torch.func.jacfwd(lambda x, name=name: number(name, x))(flat)
            std = (J @ self.covariance @ J.T).diagonal().clamp(min=0).sqrt().numpy()
            found[name] = intervals(np.zeros_like(std), std, 2 * (len(self.train) - 1))[1]
        return found

    def given(self, name: str) -> Array:
        """Return what a number was before, in the form of `values`."""
        return _shown(name, torch.as_tensor(self.world.setup.default(parameter(name)))).numpy()

    def found(self) -> Thrown:
        """Return the body with the friction and restitution found; its other numbers are `values`."""
        own = {name: float(self.values[name][0]) for name in ("friction", "restitution") if name in self.raws}
        return replace(self.thrown, **own)

    def rows(self) -> list[dict[str, object]]:
        """Return the numbers as rows of a table."""
        table = []
        for name, value in self.values.items():
            wide, before = self.half_widths[name], self.given(name)
            for k, x in enumerate(value):
                label = name if len(value) == 1 else f"{name} {AXES.get(name, '12345')[k : k + 1] or k + 1}"
                if name == "inertia":
                    label = f"inertia {('xx', 'yy', 'zz', 'xy', 'xz', 'yz')[k]}"
                table.append(
                    {
                        "number": label,
                        "unit": UNKNOWNS[name].unit,
                        "given": float(before[k]),
                        "found": float(x),
                        "+- 95 %": float(wide[k]),
                    }
                )
        return table

    def summary(self) -> str:
        """Return the result in words."""
        lines = [
            f"{self.tosses.source}: {len(self.tosses)} tosses, {len(self.train)} fitted, {len(self.test)} held out; "
            f"contact {self.contact}; {self.seconds:.0f} s of processor time",
            *self.tosses.notes,
            "",
            f"{'number':<16}{'unit':<9}{'given':>11}{'found':>11}{'+- 95 %':>11}",
        ]
        lines += [
            f"{r['number']:<16}{r['unit']:<9}{r['given']:>11.4g}{r['found']:>11.4g}{r['+- 95 %']:>11.2g}"
            for r in self.rows()
        ]
        lines += ["", "errors in the tosses held out:"]
        for name, errors in self.errors.items():
            lines.append(f"  {name}: " + ", ".join(f"{k} {v:.2f}" for k, v in errors.row().items()))
        return "\n".join(lines)


AXES = {"size": "xyz", "position": "xyz", "com": "xyz", "gravity": "xyz"}


def _shown(name: str, value: Tensor) -> Tensor:
    """Return the numbers of a parameter that say something: six of an inertia, the height of a floor, three of a solimp."""
    if name == "inertia":
        return value.reshape(-1)[[0, 4, 8, 1, 2, 5]]
    if name == "floor":
        return value[2:]
    return value[:3] if name == "solimp" else value
