"""A shape that the package does not know: one class and one call in this file, then used like those of the package.

With two equal semi-axes it is a cylinder, so the package's own cylinder is the oracle; otherwise closed forms are.
"""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
import torch
from casadi import SX
from tests.gradients import check_gradients

import costate as cs
from costate.collision.contact_point import Placed
from costate.collision.kinds import KINDS, solid_of
from costate.collision.mesh.triangles import unit_cylinder
from costate.collision.pairs import by_program, contact_points
from costate.collision.shapes import Convex, Cylinder, Number, Part, Plane, Sphere, rays
from costate.collision.shapes.convex import SNAP, Flats, side_flats, sign
from costate.collision.shapes.solid import MassProperties, Points, from_faces, length, sizes
from costate.draw.drawing import draw_model
from costate.draw.recording import record
from costate.model import ModelError, Transform
from costate.model.shape import SHAPE_SIZES
from costate.report.replay import recording_html

D = torch.float64


@dataclass(frozen=True, eq=False)
class Oval(Convex):
    """A cylinder along z whose cross-section is an ellipse."""

    x: Number
    """Semi-axis along x [m]."""
    y: Number
    """Semi-axis along y [m]."""
    length: Number

    size_count = 3
    edge_axes = (2,)

    @property
    def semi(self) -> SX:
        return ca.vertcat(self.x, self.y)

    def _stretched(self, d: SX) -> tuple[SX, SX]:
        """Return where the rim is furthest in a direction, and a quarter of a turn on, on the unit circle."""
        way = self.semi * d[:2] + 1e-9 * ca.vertcat(1, 0)
        u = way / length(way)
        return u, ca.vertcat(-u[1], u[0])

    def distance(self, p: SX) -> SX:
        """Return the distance to first order near the side, exact below and above."""
        inside, slope = length(p[:2] / self.semi), length(p[:2] / self.semi**2)
        return from_faces(ca.vertcat(inside * (inside - 1) / slope, ca.fabs(p[2]) - self.length / 2))

    def points(self) -> Points:
        return self.points_toward(SX([1, 0, 0]))

    def points_toward(self, d: SX) -> Points:
        u, w = self._stretched(d)
        ends = [end * self.length / 2 for end in (-1, 1)]
        return [(ca.vertcat(self.semi * way, end), 0.0) for end in ends for way in (u, w, -u, -w)]

    def support(self, d: SX) -> SX:
        return ca.vertcat(self.semi * self._stretched(d)[0], sign(d[2]) * self.length / 2)

    def face(self, d: SX) -> list[SX]:
        u, w = self._stretched(d)
        flat = d[2] ** 2 > ca.dot(d[:2], d[:2])
        turns = [(np.cos(a), np.sin(a)) for a in np.arange(8) * np.pi / 4]
        ends = [ca.vertcat(self.semi * (c * u + s * w), sign(d[2]) * self.length / 2) for c, s in turns]
        sides = [ca.vertcat(self.semi * u, side * self.length / 2) for side in (-1, -1, -1, -1, 1, 1, 1, 1)]
        return [ca.if_else(flat, end, side) for end, side in zip(ends, sides, strict=True)]

    def flats(self, n: SX) -> Flats:
        on_end = ca.dot(n[:2], n[:2]) < SNAP**2
        return ca.vertcat(on_end, 0, 0), ca.vertcat(0, on_end, 0), side_flats(n)[2]

    def face_normals(self, p: SX) -> list[SX]:
        side = p[:2] / self.semi**2 + 1e-9 * ca.vertcat(1, 0)
        return [SX([0, 0, -1]), SX([0, 0, 1]), ca.vertcat(side / length(side), 0)]

    def interval(self, p: SX, d: SX) -> rays.Interval:
        side = rays.ball(1, p[:2] / self.semi, d[:2] / self.semi)
        return rays.both(side, rays.between(rays.slab(2, self.length / 2), p, d))

    def mass_properties(self, mass: float) -> MassProperties:
        a, b, h = sizes(self)
        return None, mass * np.diag([(3 * b**2 + h**2) / 12, (3 * a**2 + h**2) / 12, (a**2 + b**2) / 4])

    def parts(self) -> list[Part]:
        return [Part("cylinder", unit_cylinder, sizes(self))]


cs.shapes.register("oval", Oval)

SIZE = (0.1, 0.05, 0.3)
LYING = (np.pi / 2, 0.0, 0.0)
"""Its axis along y, its short semi-axis upright."""
CONTACTS = {"hard": cs.Hard(), "compliant": cs.Compliant(), "newton": cs.Newton()}


def oval(**more) -> cs.Body:
    shape = cs.shapes.shape("oval", SIZE, rpy=LYING, color=(0.9, 0.1, 0.1, 1.0))
    return cs.Body("oval", [shape], 2.0, pose=Transform(translation=np.array([0.0, 0.0, 0.05])), **more)


def ball(height: float) -> cs.Body:
    """A ball that slides up and down."""
    pose = Transform(translation=np.array([0.02, 0.03, height]))
    return cs.Body("ball", [cs.shapes.sphere(0.04)], 0.5, joint="prismatic", pose=pose)


def pile(contact, **more) -> cs.World:
    ground = cs.Static("ground", cs.shapes.plane())
    return cs.World(bodies=[oval(), ball(0.14)], scenery=[ground], contact=contact, dt=0.004, **more)


def test_a_kind_is_known_once_it_is_registered():
    assert KINDS.keys() == SHAPE_SIZES.keys()
    assert {name: k.size_count for name, k in KINDS.items()} == SHAPE_SIZES
    shape = cs.shapes.shape("oval", SIZE)
    assert isinstance(solid_of(shape), Oval) and sizes(solid_of(shape)) == list(SIZE)
    with pytest.raises(ModelError, match="a oval has 3 sizes"):
        cs.shapes.shape("oval", (1.0, 2.0))
    with pytest.raises(ValueError, match="'box' is a kind of shape of the package"):
        cs.shapes.register("box", Oval)


def points(a, b, x: np.ndarray) -> np.ndarray:
    """Gap, point and normal of every contact point, with a at a pose (rotation vector, position)."""
    pose = SX.sym("pose", 12)
    found = contact_points(Placed(a, ca.reshape(pose[:9], 3, 3), pose[9:]), Placed(b, SX.eye(3), SX([0.1, -0.2, 0.05])))
    columns = ca.horzcat(*(ca.vertcat(c.gap, c.point, c.normal) for c in found))
    return np.array(ca.Function("points", [pose], [columns])(x))


def test_a_round_one_stands_on_a_plane_as_a_cylinder_does():
    round_one, same = Oval(0.1, 0.1, 0.3), Cylinder(0.1, 0.3)
    assert by_program(round_one, Sphere(0.07)) and not by_program(round_one, Plane())
    rng = np.random.default_rng(2)
    for _ in range(5):
        R = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        pose = np.concatenate([(R * np.linalg.det(R)).T.ravel(), rng.standard_normal(3)])
        assert points(round_one, Plane(), pose) == pytest.approx(points(same, Plane(), pose), abs=1e-8)
    assert round_one.mass_properties(2.0)[1] == pytest.approx(same.mass_properties(2.0)[1])


def test_inertia_is_that_of_points_inside():
    body = oval()
    grid = np.stack(np.meshgrid(*(np.linspace(-s, s, 61) for s in (0.1, 0.05, 0.15))), -1).reshape(-1, 3)
    p = SX.sym("p", 3)
    distance = ca.Function("distance", [p], [solid_of(body.shapes[0]).distance(p)])
    inside = grid[np.array(distance(grid.T)).ravel() < 0]
    local = np.diag(np.sum(inside**2, 1).mean() - np.mean(inside**2, 0)) * body.mass
    R = body.shapes[0].pose.rotation
    assert body.model().links[1].inertia.matrix == pytest.approx(R @ local @ R.T, rel=0.05, abs=1e-6)


def height_at(x: float) -> float:
    """Half the height of the oval that lies, at a distance from its middle [m]."""
    return SIZE[1] * np.sqrt(1 - (x / SIZE[0]) ** 2)


@pytest.fixture(scope="module", params=CONTACTS)
def world(request) -> cs.World:
    return pile(CONTACTS[request.param], parameters=["size:oval"])


def test_it_carries_a_ball(world):
    """Gaps are those of the closed form; at rest the ground carries both weights and the ball its own."""
    state = world.initial_state()
    found = world.contacts(state)
    on_ground = torch.tensor(["ground" in pair for pair in found.shapes])
    assert float(found.gaps[on_ground].min()) == pytest.approx(0.0, abs=1e-9)
    # The nearest point of an ellipse to the ball's middle, found by trying many.
    angle = np.linspace(0, np.pi, 200_001)
    ring = np.stack([SIZE[0] * np.cos(angle), SIZE[1] * np.sin(angle)], 1)
    expected = np.linalg.norm(ring - (0.02, 0.14 - 0.05), axis=1).min() - 0.04
    assert float(found.gaps[~on_ground].min()) == pytest.approx(expected, abs=1e-8)
    end = world.rollout(state, torch.zeros(200, 0, dtype=D))[-1]
    found = world.contacts(end)
    force = (found.normals * found.forces.unsqueeze(-1) + found.friction)[..., 2]
    assert float(force[on_ground].sum().abs()) == pytest.approx(2.5 * 9.81, rel=0.02)
    assert float(force[~on_ground].sum().abs()) == pytest.approx(0.5 * 9.81, rel=0.02)
    assert float(found.gaps.min()) > -2e-3


def test_gradients_in_its_sizes(world):
    """Tilted a little, and with both contacts closed."""
    state = world.initial_state()
    state[3:7] = torch.nn.functional.normalize(torch.tensor([0.002, 0.01, 0.003, 1.0], dtype=D), dim=0)
    found = world.contacts(state)
    for k, name in ((2, "ground"), (7, "ball/body/0")):
        mine = torch.tensor([name in pair for pair in found.shapes])
        state[k] -= float(found.gaps[mine].min()) + 7e-4
    state[7] -= state[2] - world.initial_state()[2]  # the oval was moved as well
    state[world.nq :] = torch.tensor([0.6, -0.4, -0.1, 0.3, 0.5, -0.2, -0.3], dtype=D)
    closed = world.contacts(state)
    assert all(bool((closed.gaps[[name in p for p in closed.shapes]] < 0).any()) for name in ("ground", "ball/body/0"))

    def after(x, size):
        return world.step(x, params={"size:oval": size})

    check_gradients(after, [state, torch.tensor(SIZE, dtype=D)])


def test_rays_see_it():
    """From above, off the middle; a ray beside it sees the ground."""
    directions = ((0.0, 0.0, -1.0), (0.0, 1.0, -1.0))
    sensor = cs.sensors.RangeFinder("world", (0.06, 0.0, 1.0), directions, ignore=("ball",))
    world = pile(cs.Hard())
    seen = sensor.read(world, world.initial_state())
    assert seen.tolist() == pytest.approx([1.0 - 0.05 - height_at(0.06), np.sqrt(2.0)])


def test_it_is_drawn(tmp_path: Path):
    world = pile(cs.Hard())
    drawing = draw_model(world.setup.scene.model)
    (part,) = [i for i in drawing.instances if i.name == "oval/body"]
    assert part.mesh == "cylinder" and part.scale.tolist() == pytest.approx(SIZE)
    from PIL import Image

    path = cs.render(world, world.initial_state(), tmp_path / "oval.png", size=(160, 90))
    r, g, b = np.moveaxis(np.asarray(Image.open(path).convert("RGB"), float), -1, 0)
    assert ((r > 2 * g) & (r > 2 * b)).sum() > 300
    page = recording_html("oval", record(world, world.initial_state()))
    assert '"scale":[0.1,0.05,0.3]' in page.replace(" ", "")


def test_a_shape_that_says_nothing_more_is_refused_by_name():
    """Only its support: no rays, no inertia, and a box in pictures, each with what to do."""

    @dataclass(frozen=True, eq=False)
    class Bare(Convex):
        radius: Number

        size_count = 1

        def distance(self, p: SX) -> SX:
            return length(p) - self.radius

        def support(self, d: SX) -> SX:
            return self.radius * d / length(d)

    cs.shapes.register("bare", Bare)
    try:
        shape = cs.shapes.shape("bare", [0.1])
        with pytest.raises(ValueError, match=r"the inertia of a Bare must be given: Body"):
            cs.Body("x", [shape], 1.0).model()
        body = cs.Body("x", [shape], 1.0, inertia=np.eye(3))
        with pytest.warns(UserWarning, match="'x/body' is drawn as a box: a Bare cannot be drawn"):
            draw_model(cs.World(bodies=[body], contact=None).setup.scene.model)
        middle, half = Bare(SX(0.1)).bounding_box()
        assert np.array(ca.DM(half)).ravel() == pytest.approx(0.1) and not np.array(ca.DM(middle)).any()
    finally:
        del KINDS["bare"], SHAPE_SIZES["bare"]


def test_another_size_is_another_shape():
    assert sizes(replace(Oval(*SIZE), x=0.2)) == [0.2, 0.05, 0.3]
