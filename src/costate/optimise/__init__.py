"""Optimisers that share one calling convention: `solver(problem, start, SolverOptions(...)) -> Solution`."""

from costate.optimise.cost import Cost
from costate.optimise.direct import DirectOptions, direct
from costate.optimise.gauss_newton import GaussNewtonOptions, covariance, gauss_newton
from costate.optimise.gradient import GradientOptions, gradient
from costate.optimise.ilqr import ILQROptions, ilqr
from costate.optimise.layers.mpc import Planned, mpc
from costate.optimise.search import SearchOptions, search
from costate.optimise.solution import Record, Solution

__all__ = [
    "Cost",
    "DirectOptions",
    "GaussNewtonOptions",
    "GradientOptions",
    "ILQROptions",
    "Planned",
    "Record",
    "SearchOptions",
    "Solution",
    "covariance",
    "direct",
    "gauss_newton",
    "gradient",
    "ilqr",
    "mpc",
    "search",
]
