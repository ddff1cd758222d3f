"""Identification: physical parameters of a robot from logged motion.

result = cs.identify("ur5", "log.csv")
print(result.summary())
result.save_urdf("identified.urdf")
"""

from costate.learn.identify.derivatives import differentiate
from costate.learn.identify.log import Log, LogError
from costate.learn.identify.pipeline import IdentifyOptions, identify
from costate.learn.identify.regressor import Regressor
from costate.learn.identify.result import Identification

__all__ = ["Identification", "IdentifyOptions", "Log", "LogError", "Regressor", "differentiate", "identify"]
