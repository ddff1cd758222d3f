"""The report: blocks of HTML, and the page around them."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costate import __version__
from costate.report.heat import heat_html
from costate.report.plot import Plot, plot_html
from costate.report.table import cell, mark, table_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from costate.continuum import HexMesh, ToolPath
    from costate.draw.particles.cloud import Cloud
    from costate.draw.recording import Recording


class Report:
    """A page in the making. Blocks appear in the order in which they are added."""

    def __init__(self, title: str, subtitle: str = ""):
        self.title, self.subtitle = title, subtitle
        self._blocks: list[str] = []
        self._replays: list[str] = []

    def section(self, title: str) -> None:
        self._blocks.append(f"<h2>{escape(title)}</h2>")

    def text(self, text: str) -> None:
        """Add paragraphs, separated by empty lines."""
        self._blocks += [f"<p>{escape(p.strip())}</p>" for p in text.split("\n\n") if p.strip()]

    def links(self, files: Mapping[str, str]) -> None:
        """Add links to files next to the page: name of the file -> what it is."""
        items = (
            f'<li><a href="{escape(name, quote=True)}">{escape(name)}</a>: {escape(what)}</li>'
            for name, what in files.items()
        )
        self._blocks.append(f"<ul>{''.join(items)}</ul>")

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Add the few numbers that matter, in large type."""
        tiles = (f"<div>{_bold(v)}<span>{escape(k)}</span></div>" for k, v in facts.items())
        self._blocks.append(f'<div class="facts">{"".join(tiles)}</div>')

    def table(
        self,
        rows: Sequence[Mapping[str, Any]] | Sequence[Sequence[Any]],
        columns: Sequence[str] = (),
        caption: str = "",
    ) -> None:
        """Add a table: rows as mappings, or as sequences under the given columns."""
        self._blocks.append(table_html(rows, columns, caption))

    def plot(
        self,
        series: Mapping[str, Any],
        x: Any = None,
        *,
        title: str = "",
        x_label: str = "",
        y_label: str = "",
        log_y: bool = False,
        markers: bool = False,
        follow: str = "",
        levels: Mapping[str, float] | None = None,
        bars: bool = False,
    ) -> None:
        """Add a plot: lines over x (default: 0, 1, 2, ...), or bars. Gaps where a value is not finite.

        follow: a replay whose time is shown. levels: name -> height of a dashed line, such as a limit.
        """
        plot = Plot(series, x, title, x_label, y_label, log_y, markers, follow, levels or {}, bars)
        self._blocks.append(plot_html(plot))

    def heat(self, values: Any, names: Sequence[str], title: str = "", legend: str = "") -> None:
        """Add signed values (rows, steps) as strips of colour, blue below zero, red above; each row has its own scale."""
        self._blocks.append(heat_html(np.asarray(values, float), names, title, legend))

    def figure(self, figure: Figure, caption: str = "") -> None:
        """Add a matplotlib figure, unchanged."""
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", bbox_inches="tight")
        svg = buffer.getvalue()
        svg = svg[svg.index("<svg") :]
        self._blocks.append(f'<figure class="figure">{svg}<figcaption>{escape(caption)}</figcaption></figure>')

    def picture(self, picture: str | Path | np.ndarray, caption: str = "") -> None:
        """Add a picture: an image file, or RGB bytes (height, width, 3)."""
        data, kind = _image(picture)
        source = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
        alt = escape(caption, quote=True)
        self._blocks.append(
            f'<figure class="picture"><img src="{source}" alt="{alt}"><figcaption>{escape(caption)}</figcaption></figure>'
        )

    def replay(self, source: Any, states: Any, caption: str = "", **options: Any) -> str:
        """Add an interactive 3D replay of a world, robot or model; returns its name, for `plot(follow=...)`.

        options: controls, gradient, contacts, energy, trails, dt, samples, spacing, as in `costate.view`.
        """
        from costate.draw.recording import record

        return self.recording(record(source, states, **options), caption)

    def recording(
        self,
        recording: Recording,
        caption: str = "",
        *,
        speed: float = 1.0,
        play: bool = False,
        box: tuple[Any, Any] | None = None,
        follow: bool = False,
    ) -> str:
        """Add an interactive 3D replay of a recording; returns its name, for `plot(follow=...)`.

        speed, play: how it starts. box: lowest and highest corner of what the camera sees at first [m]; None: everything.
        follow: the camera goes along with a robot that goes far.
        """
        from costate.report.replay import recording_html

        name = self._named("replay.js")
        self._blocks.append(recording_html(name, recording, caption, speed=speed, play=play, box=box, follow=follow))
        return name

    def part(
        self,
        mesh: HexMesh,
        times: Any,
        values: Any,
        title: str = "temperature",
        caption: str = "",
        *,
        unit: str = "K",
        limits: tuple[float, float] | None = None,
        path: ToolPath | None = None,
        speed: float | None = None,
        play: bool = False,
    ) -> str:
        """Add an interactive 3D view of a part that grows, with a colour for a number at every node; returns its name, for
        `plot(follow=...)`.

        Args:
            mesh: Elements in the order of their births.
            times: Times of the frames (K,) [s]; at most 200 of them are kept.
            values: Numbers at the nodes (K, N).
            title: What the numbers are, written with their unit above the scale of colours.
            caption: Text below.
            unit: Unit of the numbers.
            limits: Numbers at the ends of the scale of colours; None: the least and the greatest of nodes that are born.
            path: Path of the laser, which is drawn where it is on.
            speed: Speed at first, by that of the process; None: one with which playing takes 15 s at most.
            play: Whether it plays at once.
        """
        from costate.draw.part.growth import growth_of
        from costate.report.part import part_html

        growth = growth_of(mesh, times, values, unit=unit, limits=limits, path=path)
        name = self._named("part.js")
        self._blocks.append(part_html(name, growth, title, caption, speed=speed, play=play))
        return name

    def particles(
        self,
        times: Any,
        positions: Any,
        values: Any = None,
        title: str = "",
        caption: str = "",
        *,
        unit: str = "",
        limits: tuple[float, float] | None = None,
        radius: float | None = None,
        speed: float | None = None,
        play: bool = False,
    ) -> str:
        """Add an interactive view of particles over time, with a colour for a number of each; returns its name, for
        `plot(follow=...)`.

        Args:
            times: Times of the frames (K,) [s]; at most 300 of them are kept, fewer from 20,000 particles on.
            positions: Positions (K, N, 2) or (K, N, 3) [m]; the second axis of flat ones points upwards.
            values: Numbers or kinds (N,) or (K, N); None: all particles have the same colour.
            title: What the numbers are, written with their unit above the scale of colours.
            caption: Text below.
            unit: Unit of the numbers.
            limits: Numbers at the ends of the scale of colours; None: the least and the greatest.
            radius: Radius of a particle [m]; None: one with which they fill the box around them at the beginning.
            speed: Speed at first; None: that of the motion, or one with which playing takes 15 s at most.
            play: Whether it plays at once.
        """
        from costate.draw.particles.cloud import cloud_of

        cloud = cloud_of(times, positions, values, radius=radius, unit=unit, limits=limits)
        return self._cloud(cloud, title, caption, speed, play)

    def grid(
        self,
        times: Any,
        values: Any,
        title: str = "",
        caption: str = "",
        *,
        cell: float = 1.0,
        unit: str = "",
        limits: tuple[float, float] | None = None,
        axis: int = 2,
        index: int | None = None,
        speed: float | None = None,
        play: bool = False,
    ) -> str:
        """Add an interactive view of the cells of a grid over time; returns its name, for `plot(follow=...)`.

        Args:
            times: Times of the frames (K,) [s]; at most 300 of them are kept.
            values: Numbers of the cells (K, nx, ny) or (K, nx, ny, nz); the second axis that is seen points upwards.
            title: What the numbers are, written with their unit above the scale of colours.
            caption: Text below.
            cell: Edge of a cell [m].
            unit: Unit of the numbers.
            limits: Numbers at the ends of the scale of colours; None: the least and the greatest.
            axis: Axis of a grid in 3D along which is looked.
            index: Layer of a grid in 3D that is shown; None: the mean of all layers.
            speed: Speed at first; None: that of the motion, or one with which playing takes 15 s at most.
            play: Whether it plays at once.
        """
        from costate.draw.particles.cloud import grid_cloud

        cloud = grid_cloud(times, values, cell, unit=unit, limits=limits, axis=axis, index=index)
        return self._cloud(cloud, title, caption, speed, play)

    def _cloud(self, cloud: Cloud, title: str, caption: str, speed: float | None, play: bool) -> str:
        from costate.report.particles import particles_html

        name = self._named("particles.js")
        self._blocks.append(particles_html(name, cloud, title, caption, speed=speed, play=play))
        return name

    def _named(self, script: str) -> str:
        """Return the name of the next interactive view, which needs a script."""
        self._replays.append(script)
        return f"replay-{len(self._replays) - 1}"

    def row(self, width: int = 420) -> AbstractContextManager[None]:
        """Begin a row: blocks added inside stand beside each other where there is room. width: of the narrowest [pixels]."""
        return self._row(width)

    @contextmanager
    def _row(self, width: int):
        before, self._blocks = self._blocks, []
        yield
        self._blocks = [*before, f'<div class="row" style="--narrowest:{width}px">{"".join(self._blocks)}</div>']

    def html(self) -> str:
        """Return the whole page."""
        own = files("costate.report")
        scripts = ["page.js"] + ["scene.js"] * bool(self._replays) + sorted(set(self._replays))
        code = "\n".join(own.joinpath(name).read_text() for name in scripts)
        body = "\n".join(self._blocks)
        return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="costate {__version__}"><link rel="icon" href="data:,">
<title>{escape(self.title)}</title><style>{own.joinpath("page.css").read_text()}</style></head>
<body><main><header><h1>{escape(self.title)}</h1><p>{escape(self.subtitle)}</p><button class="theme">dark</button></header>
{body}
<footer>costate {__version__}</footer></main><script>{code}</script></body></html>
"""

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the page in a frame of its own."""
        from costate.report.notebook import report_html

        return report_html(self)

    def save(self, path: str | Path) -> Path:
        """Write the page, whole or not at all; returns its path."""
        from costate.core.files import write_atomically

        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        page = self.html()
        write_atomically(path, lambda temporary: temporary.write_text(page, encoding="utf-8", errors="replace"))
        return path


def _bold(value: Any) -> str:
    kind = f' class="{mark(value)}"' if mark(value) else ""
    return f"<b{kind}>{escape(cell(value))}</b>"


def _image(picture: str | Path | np.ndarray) -> tuple[bytes, str]:
    if not isinstance(picture, np.ndarray):
        path = Path(picture)
        return path.read_bytes(), path.suffix.lower().lstrip(".").replace("jpg", "jpeg").replace("svg", "svg+xml")
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.asarray(picture, np.uint8)).save(buffer, "PNG", optimize=True)
    return buffer.getvalue(), "png"
