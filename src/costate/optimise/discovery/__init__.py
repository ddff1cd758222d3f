"""Discovery of inputs: networks are fitted to motions, and those inputs stay that they cannot do without."""

from costate.optimise.discovery.discover import DiscoverOptions, Discovery, discover
from costate.optimise.discovery.motions import Motions, motion_loss

__all__ = ["DiscoverOptions", "Discovery", "Motions", "discover", "motion_loss"]
