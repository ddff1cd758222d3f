"""Identification: physical parameters of a robot from logged motion.

    result = cs.identify("ur5", "log.csv")
    print(result.summary())
    result.save_urdf("identified.urdf")

The stages are `log` (read and check), `derivatives`, `regressor`, `base`, `solve`, `possible` (or `adam`) and `result`; `pipeline`
puts them together. `excite` designs motions that are worth logging. `tosses` finds contact, inertia and shape of a body
that is thrown.
"""

import sys
from types import ModuleType

from costate.identify.derivatives import differentiate
from costate.identify.log import Log
from costate.identify.pipeline import IdentifyOptions, identify
from costate.identify.regressor import Regressor
from costate.identify.result import Identification
from costate.identify.tables import LogError

__all__ = ["Identification", "IdentifyOptions", "Log", "LogError", "Regressor", "differentiate", "identify"]


class _Callable(ModuleType):
    """This package as a function: `cs.identify` names both, and Python binds it to the package once that is imported."""

    __call__ = staticmethod(identify)


sys.modules[__name__].__class__ = _Callable
