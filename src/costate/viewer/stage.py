"""Drawings on the page. All instances of a mesh, of all links and samples, are one node that moves with one message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.core.arrays import Array as Floats
from costate.draw.color import linear
from costate.draw.drawing import Drawing

if TYPE_CHECKING:
    import viser


@dataclass(frozen=True, eq=False)
class Touched:
    """A part that the user has clicked or dragged."""

    link: int
    sample: int


def quaternions(rotations: Floats) -> Floats:
    """Return wxyz of rotations (..., 3, 3): of the four ways to compute one, that with the largest divisor."""
    R = np.asarray(rotations)
    xx, yy, zz = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    a, b, c = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    d, e, f = R[..., 0, 1] + R[..., 1, 0], R[..., 0, 2] + R[..., 2, 0], R[..., 1, 2] + R[..., 2, 1]
    rows = np.stack(
        [
            np.stack([1 + xx + yy + zz, a, b, c], -1),
            np.stack([a, 1 + xx - yy - zz, d, e], -1),
            np.stack([b, d, 1 - xx + yy - zz, f], -1),
            np.stack([c, e, f, 1 - xx - yy + zz], -1),
        ],
        -2,
    )
    best = np.argmax(np.stack([rows[..., k, k] for k in range(4)], -1), -1)
    q = np.take_along_axis(rows, best[..., None, None], -2)[..., 0, :]
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


class Stage:
    """A drawing, for one sample or several, as nodes of the scene."""

    def __init__(
        self,
        server: viser.ViserServer,
        name: str,
        drawing: Drawing,
        links: Floats,
        *,
        visible: bool = True,
        shadow: bool = True,
    ):
        """Add the instances of a drawing. links: poses (samples, links, 3, 4)."""
        self.drawing, self.samples = drawing, len(links)
        self._groups: list[tuple[Any, np.ndarray]] = []
        placed = drawing.place(links)
        for k, (key, mesh) in enumerate(drawing.meshes.items()):
            own = np.array([i for i, part in enumerate(drawing.instances) if part.mesh == key], int)
            if not len(own):
                continue
            # The page takes the colours of instances as linear light.
            colors = np.round(255 * linear(drawing.colors[own, :3])).astype(np.uint8)
            position, wxyz = _flat(placed, own)
            node = server.scene.add_batched_meshes_simple(
                f"{name}/{k}",
                mesh.vertices,
                mesh.faces,
                wxyz,
                position,
                batched_scales=np.tile(drawing.scales[own], (self.samples, 1)).astype(np.float32),
                batched_colors=np.tile(colors, (self.samples, 1)),
                batched_opacities=_opacities(drawing.colors[own, 3], self.samples),
                lod="off",
                visible=visible,
                cast_shadow=shadow,
                receive_shadow=shadow,
            )
            self._groups.append((node, own))

    def move(self, links: Floats) -> None:
        """Move to poses (samples, links, 3, 4)."""
        placed = self.drawing.place(links)
        for node, own in self._groups:
            node.batched_positions, node.batched_wxyzs = _flat(placed, own)

    @property
    def visible(self) -> bool:
        return any(node.visible for node, _ in self._groups)

    @visible.setter
    def visible(self, shown: bool) -> None:
        for node, _ in self._groups:
            node.visible = shown

    def on_click(self, call: Callable[[Touched, Any], None]) -> None:
        for node, own in self._groups:
            node.on_click(lambda event, own=own: self._tell(call, own, event))

    def on_drag(self, call: Callable[[Touched, Any], None], modifier: str | None = None) -> None:
        for node, own in self._groups:
            node.on_drag("left", modifier=modifier)(lambda event, own=own: self._tell(call, own, event))

    def _tell(self, call: Callable[[Touched, Any], None], own: np.ndarray, event: Any) -> None:
        """Call with the part that was touched, if there is such a one."""
        index = event.instance_index or 0
        if isinstance(index, int) and 0 <= index < self.samples * len(own):
            sample, k = divmod(index, len(own))
            call(Touched(self.drawing.instances[own[k]].link, sample), event)

    def remove(self) -> None:
        for node, _ in self._groups:
            node.remove()


def _flat(placed: Floats, own: np.ndarray) -> tuple[Floats, Floats]:
    """Return positions (samples * instances, 3) and wxyz (samples * instances, 4), float32."""
    part = placed[:, own].reshape(-1, 3, 4)
    return part[..., 3].astype(np.float32), quaternions(part[..., :3]).astype(np.float32)


def _opacities(alpha: Floats, samples: int) -> Floats | None:
    return None if (alpha == 1).all() else np.tile(alpha, samples).astype(np.float32)
