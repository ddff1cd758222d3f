"""Trainers, optimisers and identification from data.

The optimisers share one way of calling: `solver(what, start, SolverOptions(...)) -> Solution`.
"""

from costate.learn.cost import Cost
from costate.learn.direct import DirectOptions, direct
from costate.learn.gauss_newton import GaussNewtonOptions, covariance, gauss_newton
from costate.learn.gradient import GradientOptions, gradient
from costate.learn.ilqr import ILQROptions, ilqr
from costate.learn.search import SearchOptions, search
from costate.learn.solution import Record, Solution

__all__ = [
    "Cost",
    "DirectOptions",
    "GaussNewtonOptions",
    "GradientOptions",
    "ILQROptions",
    "Record",
    "SearchOptions",
    "Solution",
    "covariance",
    "direct",
    "gauss_newton",
    "gradient",
    "ilqr",
    "search",
]
