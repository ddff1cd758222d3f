"""Smoothness of a rollout: switches, growth of gradients along it, and causes of gradients that are of no use.

print(cs.diagnose(world, states, controls))
cs.diagnose(world, states, controls).page().save("smoothness.html")
"""

from costate.audit.smoothness.diagnose import diagnose as diagnose
from costate.audit.smoothness.report import Cause as Cause
from costate.audit.smoothness.report import Event as Event
from costate.audit.smoothness.report import Smoothness as Smoothness
