"""Deprecated: the optimisers are in `costate.optimise`, training in `costate.train`, identification in `costate.identify`."""

from __future__ import annotations

import warnings

from costate.optimise import *  # noqa: F403
from costate.optimise import __all__ as __all__

warnings.warn(
    "costate.learn is now costate.optimise (gradient, ilqr, gauss_newton, direct, search), costate.train and costate.identify",
    DeprecationWarning,
    stacklevel=2,
)
