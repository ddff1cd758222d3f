"""Thermal properties of metals, by tables over temperature."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from costate.continuum.checks import positive

Table = tuple[tuple[float, float], ...]
"""Rows (temperature [K], value), with straight lines between them and the end values beyond them."""


@dataclass(frozen=True)
class Material:
    """A metal that melts between two temperatures."""

    name: str
    density: float
    """Density [kg/m^3]; one for all temperatures, as a mesh keeps its volume."""
    specific_heat: Table
    """Rows (temperature [K], specific heat [J/(kg K)]), without the latent heat."""
    conductivity: Table
    """Rows (temperature [K], conductivity [W/(m K)])."""
    solidus: float
    """Temperature at which it begins to melt [K]."""
    liquidus: float
    """Temperature from which on it is liquid [K]."""
    latent_heat: float = 0.0
    """Heat of fusion [J/kg], spread evenly between solidus and liquidus."""
    emissivity: float = 0.2
    """Share of the radiation of a black body that it gives off."""
    absorptivity: float | None = None
    """Share of the laser's light that it takes up; None: not known, give the power that is taken up."""

    def __post_init__(self) -> None:
        positive(density=self.density, solidus=self.solidus, liquidus=self.liquidus)
        for name in ("specific_heat", "conductivity"):
            object.__setattr__(self, name, _table(f"{name} of {self.name}", getattr(self, name)))
        if self.solidus >= self.liquidus:
            raise ValueError(
                f"{self.name}: solidus is {self.solidus} K and liquidus {self.liquidus} K; expected the solidus below "
                "the liquidus: a pure metal gets a narrow range, such as 1 K"
            )
        if not 0 <= self.latent_heat < np.inf:
            raise ValueError(f"{self.name}: latent_heat is {self.latent_heat}; expected 0 J/kg or more")
        for name, share in (("emissivity", self.emissivity), ("absorptivity", self.absorptivity)):
            if share is not None and not 0 <= share <= 1:
                raise ValueError(f"{self.name}: {name} is {share}; expected a share from 0 to 1")

    def specific_heat_at(self, T: ArrayLike) -> NDArray[np.float64]:
        """Return the specific heat at temperatures [K], without the latent heat [J/(kg K)]."""
        return np.interp(np.asarray(T, dtype=np.float64), *self._columns["specific_heat"])

    def apparent_heat_at(self, T: ArrayLike) -> NDArray[np.float64]:
        """Return the slope of the enthalpy at temperatures [K]: specific heat, and between solidus and liquidus the latent heat."""
        T = np.asarray(T, dtype=np.float64)
        melting = np.greater_equal(T, self.solidus) & np.less(T, self.liquidus)
        return self.specific_heat_at(T) + np.where(melting, self.latent_heat / (self.liquidus - self.solidus), 0.0)

    def conductivity_at(self, T: ArrayLike) -> NDArray[np.float64]:
        """Return the conductivity [W/(m K)] at temperatures [K]."""
        return np.interp(np.asarray(T, dtype=np.float64), *self._columns["conductivity"])

    def liquid_share(self, T: ArrayLike) -> NDArray[np.float64]:
        """Return the share that is molten at temperatures [K]: 0 up to the solidus, 1 from the liquidus on."""
        return np.clip((np.asarray(T, dtype=np.float64) - self.solidus) / (self.liquidus - self.solidus), 0.0, 1.0)

    def enthalpy(self, T: ArrayLike, since: float = 298.15) -> NDArray[np.float64]:
        """Return the heat that a kilogram takes up from a temperature `since` [K] to temperatures T [K], melting included [J/kg].

        It is the integral of the specific heat, in closed form, plus the latent heat of what is molten: exact for the tables.
        """
        T = np.asarray(T, dtype=np.float64)
        sensible = self._sensible(T) - self._sensible(np.float64(since))
        return sensible + self.latent_heat * (self.liquid_share(T) - self.liquid_share(since))

    def _sensible(self, T: NDArray[np.float64] | np.float64) -> NDArray[np.float64]:
        """Return the integral of the specific heat from the first row of its table to T."""
        t, c = self._columns["specific_heat"]
        at_rows = np.concatenate([[0.0], np.cumsum(np.diff(t) * (c[1:] + c[:-1]) / 2)])
        k = np.clip(np.searchsorted(t, T, side="right") - 1, 0, len(t) - 1)
        return at_rows[k] + (T - t[k]) * (c[k] + np.interp(T, t, c)) / 2

    @cached_property
    def _columns(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        tables = {"specific_heat": self.specific_heat, "conductivity": self.conductivity}
        return {name: (np.array(table)[:, 0], np.array(table)[:, 1]) for name, table in tables.items()}


def _table(what: str, rows: ArrayLike) -> Table:
    """Return a table as tuples of floats, or raise what is wrong with it."""
    table = np.array(rows, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != 2 or not len(table):
        raise ValueError(f"{what} has the shape {table.shape}; expected rows (temperature in K, value)")
    if not np.isfinite(table).all() or (np.diff(table[:, 0]) <= 0).any():
        raise ValueError(
            f"{what} has the temperatures {table[:, 0].tolist()}; expected ascending ones, each once, in kelvin"
        )
    if (table <= 0).any():
        raise ValueError(
            f"{what} has a row that is not above 0: {table[(table <= 0).any(axis=1)][0].tolist()}; expected SI units"
        )
    return tuple((float(t), float(v)) for t, v in table)


INCONEL_718 = Material(
    name="Inconel 718",
    density=8190.0,
    specific_heat=(
        (298, 435), (373, 455), (473, 479), (573, 497), (673, 515), (773, 527), (873, 558), (973, 568), (1073, 680),
        (1173, 640), (1273, 620), (1373, 640), (1443, 650), (1609, 720),
    ),
    conductivity=(
        (298, 8.9), (373, 10.8), (473, 12.9), (573, 15.2), (673, 17.4), (773, 18.7), (873, 20.8), (973, 21.9), (1073, 26.9),
        (1173, 25.8), (1273, 26.7), (1373, 28.3), (1443, 29.3), (1609, 29.6),
    ),
    solidus=1533.15,
    liquidus=1609.15,
    latent_heat=272e3,
    emissivity=0.2,
)  # fmt: skip
"""A nickel alloy. Tables as shipped with the public thermal code GAMMA; melting range, heat of fusion and emissivity as used by
Mozaffar and Cao (arXiv 2107.10919); density of data sheets."""

TI_6AL_4V = Material(
    name="Ti-6Al-4V",
    density=4420.0,
    specific_heat=(
        (298, 546), (373, 562), (473, 584), (573, 606), (673, 629), (773, 651), (873, 673), (973, 694), (1073, 714),
        (1173, 734), (1273, 697), (1373, 660), (1473, 678), (1573, 696), (1673, 714), (1773, 732), (1873, 750), (1923, 795),
        (1973, 831),
    ),
    conductivity=(
        (298, 7.0), (373, 7.45), (473, 8.75), (573, 10.15), (673, 11.35), (773, 12.6), (873, 14.2), (973, 15.5), (1073, 17.8),
        (1173, 20.2), (1273, 21.0), (1373, 21.0), (1473, 22.9), (1573, 23.7), (1673, 24.6), (1773, 25.8), (1873, 27.0),
        (1923, 30.9), (1973, 34.6),
    ),
    solidus=1878.0,
    liquidus=1928.0,
    latent_heat=286e3,
    emissivity=0.35,
)  # fmt: skip
"""A titanium alloy. Tables TI64_cp and TI64_cond of public thermal codes (jinchoi-git/differentiable-thermomechanical-AM on
GitHub), which agree up to 1773 K with the values usually quoted from Mills, Recommended Values of Thermophysical Properties for
Selected Commercial Alloys (2002); melting range and heat of fusion as used with them. The emissivity is an assumption."""

MATERIALS = {material.name: material for material in (INCONEL_718, TI_6AL_4V)}
"""Name -> material."""
