"""Insertion: a UR5 puts a bottle into a socket that stands still or rides on a conveyor.

The arm holds a bottle (60 mm wide, 200 mm tall, 0.5 kg); the socket has 1 mm radial clearance and is 60 mm deep. An episode lasts
`horizon` control steps of 10 ms; then the bottle must stay seated for `hold` more.
"""

from __future__ import annotations

from costate.tasks.insertion.cell import InsertionOptions
from costate.tasks.insertion.episode import Disturbances, Episodes, draw, run
from costate.tasks.insertion.judge import Metrics, Verdict, judge, summarise
from costate.tasks.insertion.loss import InsertionWeights, loss, total
from costate.tasks.insertion.policy import Policy
from costate.tasks.insertion.scene import ACTION, OBSERVATION
from costate.tasks.insertion.task import Insertion
from costate.tasks.insertion.training import HorizonOptions, InsertionTraining
from costate.train.episode import Trajectory

__all__ = [
    "ACTION",
    "OBSERVATION",
    "Disturbances",
    "Episodes",
    "HorizonOptions",
    "Insertion",
    "InsertionOptions",
    "InsertionTraining",
    "InsertionWeights",
    "Metrics",
    "Policy",
    "Trajectory",
    "Verdict",
    "draw",
    "judge",
    "loss",
    "run",
    "summarise",
    "total",
]
