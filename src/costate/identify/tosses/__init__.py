"""Contact from tosses: friction, restitution, inertia and shape of a body from its recorded flights and impacts."""

from costate.identify.tosses.log import Tosses, read_tosses
from costate.identify.tosses.pipeline import TossOptions, identify_tosses
from costate.identify.tosses.result import TossResult
from costate.identify.tosses.thrown import Thrown

__all__ = ["Thrown", "TossOptions", "TossResult", "Tosses", "identify_tosses", "read_tosses"]
