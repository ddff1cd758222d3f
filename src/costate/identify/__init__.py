"""Identification: physical parameters of a robot from logged motion.

result = cs.identify("ur5", "log.csv")
print(result.summary())
result.save_urdf("identified.urdf")
"""

from costate.identify.derivatives import differentiate
from costate.identify.log import Log, LogError
from costate.identify.pipeline import IdentifyOptions, identify
from costate.identify.regressor import Regressor
from costate.identify.result import Identification

__all__ = ["Identification", "IdentifyOptions", "Log", "LogError", "Regressor", "differentiate", "identify"]
