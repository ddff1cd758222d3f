"""What is drawn, wherever it is drawn: triangle meshes placed on links, poses over time, and pictures without a screen."""

from costate.draw.drawing import Drawing, Instance, draw_model, model_of
from costate.draw.mesh import Mesh
from costate.draw.poses import Motion, motion_of
from costate.draw.recording import Recording, load_recording, record, save_recording
from costate.draw.render import render

__all__ = [
    "Drawing",
    "Instance",
    "Mesh",
    "Motion",
    "Recording",
    "draw_model",
    "load_recording",
    "model_of",
    "motion_of",
    "record",
    "render",
    "save_recording",
]
