"""Tool paths: where the laser is at each time, and whether it is on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from costate.continuum.checks import ascending, rows_of_numbers


@dataclass(frozen=True, eq=False)
class ToolPath:
    """Rows (time, position, on), with straight lines at constant speed between them.

    The laser is on from row k - 1 up to row k if `on[k]`; `on[0]` has no segment and is without effect. Before the first row and
    from the last one on it is off.
    """

    times: NDArray[np.float64]
    """Times (K,) [s], never falling; two rows at one time are a jump."""
    positions: NDArray[np.float64]
    """Positions of the spot (K, 3) [m]: on the top of the layer that is being built."""
    on: NDArray[np.bool_]
    """State of the laser during the segment that ends here (K,)."""

    def __post_init__(self) -> None:
        times = ascending("times", self.times, "times of the rows in seconds")
        positions = rows_of_numbers("positions", self.positions, 3, "positions in metres")
        on = np.array(self.on, dtype=bool)
        if not len(times) == len(positions) == len(on) or on.ndim != 1:
            raise ValueError(
                f"a path of {len(times)} times, {len(positions)} positions and {on.size} states; expected as many of each"
            )
        if len(times) < 2:
            raise ValueError(f"a path of {len(times)} rows; expected two or more: segments are between rows")
        for name, value in (("times", times), ("positions", positions), ("on", on)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def duration(self) -> float:
        """Time from the first row to the last one [s]."""
        return float(self.times[-1] - self.times[0])

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """Lengths of the segments (K - 1,) [m]."""
        return np.linalg.norm(np.diff(self.positions, axis=0), axis=1)

    @property
    def length(self) -> float:
        """Length of all segments [m], with the laser on or off."""
        return float(self.lengths.sum())

    @property
    def length_on(self) -> float:
        """Length of the segments with the laser on [m]."""
        return float(self.lengths[self.on[1:]].sum())

    @property
    def time_on(self) -> float:
        """Time during which the laser is on [s]."""
        return float(np.diff(self.times)[self.on[1:]].sum())

    def at(self, time: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the positions (..., 3) [m] at times (...) [s], and whether the laser is on (...)."""
        t = np.asarray(time, dtype=np.float64)
        k = np.searchsorted(self.times, t, side="right")
        end = np.clip(k, 1, len(self.times) - 1)
        begin, finish = self.times[end - 1], self.times[end]
        span = np.where(finish > begin, finish - begin, 1.0)
        share = np.where(finish > begin, np.clip((t - begin) / span, 0.0, 1.0), 1.0)[..., None]
        position = (1 - share) * self.positions[end - 1] + share * self.positions[end]
        inside = (k > 0) & (k < len(self.times))
        return position, inside & self.on[end]

    def __repr__(self) -> str:
        return f"ToolPath({len(self.times)} rows, {self.duration:.4g} s, {self.length_on:.4g} m with the laser on)"
