"""Layers that can be shown besides the shapes of a model: collision shapes, centres of mass, inertias, frames, names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from costate.collision.mesh.triangles import unit_sphere
from costate.core.arrays import Array as Floats
from costate.draw.drawing import Drawing, Instance, draw_model, inertia_ellipsoid
from costate.model import Model
from costate.viewer.stage import Stage, quaternions

if TYPE_CHECKING:
    import viser

INERTIA = (0.55, 0.35, 0.75, 0.5)
CENTRE = (0.95, 0.75, 0.10, 1.0)


def inertia_drawing(model: Model) -> Drawing:
    """Return an even ellipsoid with the mass and inertia of each link."""
    parts = []
    for k, link in enumerate(model.links):
        if found := inertia_ellipsoid(link):
            pose, semi = found
            matrix = np.concatenate([pose.rotation, pose.translation[:, None]], 1)
            parts.append(Instance("sphere", k, link.name, matrix, semi, INERTIA))
    return _spheres(model, parts)


def centre_drawing(model: Model, radius: float) -> Drawing:
    """Return a ball at the centre of mass of each link; its volume follows the mass."""
    heaviest = max((link.inertia.mass for link in model.links), default=0.0) or 1.0
    parts = []
    for k, link in enumerate(model.links):
        if link.inertia.mass > 0:
            matrix = np.concatenate([np.eye(3), np.reshape(link.inertia.com, (3, 1))], 1)
            size = radius * max(0.25, (link.inertia.mass / heaviest) ** (1 / 3))
            parts.append(Instance("sphere", k, link.name, matrix, np.full(3, size), CENTRE))
    return _spheres(model, parts)


def _spheres(model: Model, parts: list[Instance]) -> Drawing:
    return Drawing(tuple(link.name for link in model.links), {"sphere": unit_sphere()}, tuple(parts))


class Frames:
    """Axes of every link."""

    def __init__(self, server: viser.ViserServer, name: str, links: Floats, length: float):
        position, wxyz = self._flat(links)
        self._node = server.scene.add_batched_axes(
            name, wxyz, position, axes_length=length, axes_radius=length / 25, visible=False
        )

    @staticmethod
    def _flat(links: Floats) -> tuple[Floats, Floats]:
        flat = links.reshape(-1, 3, 4)
        return flat[..., 3].astype(np.float32), quaternions(flat[..., :3]).astype(np.float32)

    def move(self, links: Floats) -> None:
        self._node.batched_positions, self._node.batched_wxyzs = self._flat(links)

    @property
    def visible(self) -> bool:
        return self._node.visible

    @visible.setter
    def visible(self, shown: bool) -> None:
        self._node.visible = shown

    def remove(self) -> None:
        self._node.remove()


class Names:
    """A label at every link of the first sample."""

    def __init__(self, server: viser.ViserServer, name: str, drawing: Drawing, links: Floats):
        at = links[0, :, :, 3]
        self._labels = [
            server.scene.add_label(f"{name}/{k}", text, position=at[k], visible=False, font_screen_scale=0.8)
            for k, text in enumerate(drawing.links)
        ]

    def move(self, links: Floats) -> None:
        for label, p in zip(self._labels, links[0, :, :, 3], strict=True):
            label.position = p

    @property
    def visible(self) -> bool:
        return any(label.visible for label in self._labels)

    @visible.setter
    def visible(self, shown: bool) -> None:
        for label in self._labels:
            label.visible = shown

    def remove(self) -> None:
        for label in self._labels:
            label.remove()


class Layers:
    """The shapes of a model and, behind a check box each, everything else. Layers that are not shown cost nothing."""

    def __init__(
        self, server: viser.ViserServer, name: str, drawing: Drawing, links: Floats, model: Model | None, size: float
    ):
        self.server = server
        self.links = links
        """Where the links are now, shape (samples, links, 3, 4)."""
        self.shapes = Stage(server, f"{name}/shapes", drawing, links)
        self._layers: dict[str, Any] = {"shapes": self.shapes}
        if model is not None:
            hidden: dict[str, Drawing] = {
                "collision shapes": draw_model(model, collisions=True),
                "centres of mass": centre_drawing(model, 0.03 * size),
                "inertia ellipsoids": inertia_drawing(model),
            }
            for title, other in hidden.items():
                path = f"{name}/{title.replace(' ', '_')}"
                self._layers[title] = Stage(server, path, other, links, visible=False, shadow=False)
        self._layers["frames"] = Frames(server, f"{name}/frames", links, 0.08 * size)
        self._layers["names"] = Names(server, f"{name}/names", drawing, links)
        self._told = server.scene.add_label(f"{name}/told", "", visible=False)
        self._told_at: tuple[int, int] | None = None
        self.shapes.on_click(self._tell)

    def check_boxes(self) -> None:
        """Add check boxes to the folder that is open on the page."""
        for title, layer in self._layers.items():
            box = self.server.gui.add_checkbox(title, layer is self.shapes)
            box.on_update(lambda event, layer=layer: self._show(layer, event.target.value))

    def _show(self, layer: Any, shown: bool) -> None:
        layer.move(self.links)
        layer.visible = shown

    def _tell(self, touched: Any, event: Any) -> None:
        """Show the name of the link that was clicked, until it is clicked again."""
        again = self._told_at == (touched.sample, touched.link)
        self._told_at = None if again else (touched.sample, touched.link)
        self._told.text = self.shapes.drawing.links[touched.link]
        self._told.position = self.links[touched.sample, touched.link, :, 3]
        self._told.visible = not again

    def move(self, links: Floats) -> None:
        """Move to poses (samples, links, 3, 4)."""
        self.links = links
        with self.server.atomic():
            for layer in self._layers.values():
                if layer.visible:
                    layer.move(links)
            if self._told_at is not None:
                self._told.position = links[self._told_at[0], self._told_at[1], :, 3]
