"""Robots, worlds, motions and reports as HTML, as a notebook shows them: the last value of a cell.

Nothing of Jupyter is needed: `_repr_html_` of each class returns the text. Pictures are drawn without a screen, and pages stand in
a frame of their own, whose scripts cannot reach the notebook.
"""

from __future__ import annotations

import base64
import io
from html import escape
from typing import Any

import numpy as np

from costate.core.display import number
from costate.draw.drawing import model_of
from costate.draw.poses import Motion
from costate.draw.recording import Recording, record
from costate.draw.render import frames, whole_view
from costate.model import ModelError
from costate.physics.integrate import neutral
from costate.report.report import Report
from costate.report.table import table_html

PICTURE = (420, 300)
"""Width and height of a picture [pixels]."""
HEIGHT = 620
"""Height of the frame of a page [pixels]."""
UNITS = {"prismatic": "m"}
"""Kinds of joints that do not turn -> their unit."""


def robot_html(robot: Any) -> str:
    """Return a robot, or a model, as a picture beside a table of its joints."""
    model = model_of(robot)
    facts = f"{len(model.links)} links, {model.nv} degrees of freedom, {number(model.total_mass)} kg"
    rows = [
        (
            joint.name,
            joint.kind,
            UNITS.get(joint.kind, "rad"),
            *(_limit(x) for x in (joint.lower, joint.upper, joint.max_velocity)),
        )
        for joint in model.joints
        if joint.nv
    ]
    table = table_html(rows, ("joint", "kind", "unit", "lower", "upper", "speed")) if rows else ""
    q = neutral(model) if model.home is None else model.home
    return _beside(_picture(model, np.asarray(q, float), model.name), f"<b>{escape(model.name)}</b><br>{facts}{table}")


def world_html(world: Any) -> str:
    """Return a world as a picture at its start, beside a table of what it holds."""
    held = repr(world).removeprefix("World(").removesuffix(")").split("; ")
    rows = [(kind, text) if text else ("", kind) for kind, _, text in (line.partition(": ") for line in held)]
    return _beside(
        _picture(world, world.initial_state(), "the world at its start"), f"<b>World</b>{table_html(rows, ('', ''))}"
    )


def report_html(report: Report) -> str:
    """Return the page of a report in a frame of its own."""
    page = escape(report.html(), quote=True)
    style = f"width:100%;height:{HEIGHT}px;border:1px solid #8884;border-radius:6px"
    title = escape(report.title, quote=True)
    return f'<iframe srcdoc="{page}" title="{title}" sandbox="allow-scripts" style="{style}"></iframe>'


def recording_html(recording: Recording) -> str:
    """Return a motion as an interactive replay in a frame of its own."""
    motion = recording.motion
    told = f"{motion.frames} states of {motion.samples} samples" if motion.samples > 1 else f"{motion.frames} states"
    report = Report("Motion", f"{told}, {number(motion.times[-1])} s")
    report.recording(recording, play=motion.frames > 1)
    return report_html(report)


def motion_html(motion: Motion) -> str:
    """Return a motion as an interactive replay in a frame of its own."""
    return recording_html(Recording(motion))


def _limit(values: Any) -> float | None:
    return float(values[0]) if len(values) == 1 and np.isfinite(values[0]) else None


def _picture(source: Any, state: Any, text: str) -> str:
    """Return a picture as HTML; the reason where there is none. text: what it shows, for those who cannot see it."""
    try:
        recording = record(source, state)
        (image,) = frames(recording, [0], PICTURE, whole_view(recording.motion, PICTURE))
    except (ModelError, ValueError, ImportError, OSError) as error:
        return f"<i>no picture: {escape(str(error))}</i>"
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    data = base64.b64encode(buffer.getvalue()).decode()
    size = f'width="{PICTURE[0]}" height="{PICTURE[1]}"'
    return f'<img alt="{escape(text, quote=True)}" {size} src="data:image/png;base64,{data}">'


def _beside(picture: str, text: str) -> str:
    """Return a picture with text to its right."""
    style = "display:flex;gap:16px;align-items:flex-start;flex-wrap:wrap"
    return f'<div style="{style}"><div>{picture}</div><div style="max-height:{PICTURE[1]}px;overflow:auto">{text}</div></div>'
