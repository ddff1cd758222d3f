"""Solving tasks: problems for optimisers, the table of which optimiser solves which task, and least times."""

from __future__ import annotations

from costate.train.solve.recipes import RECIPES, Recipe, recipe
from costate.train.solve.solve import Outcome, solve

__all__ = ["RECIPES", "Outcome", "Recipe", "recipe", "solve"]
