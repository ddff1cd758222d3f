"""Pairs that are programs: distances against MuJoCo, degenerate poses, derivatives against finite differences."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
import torch
from casadi import DM, SX
from tests.gradients import Tolerances, check_gradients

from costate.kernel import Kernel, ProgramBuilder
from costate.physics.hull import Hull, hull_of
from costate.physics.narrow import PLACE, pair_program
from costate.physics.shapes import FAR, Box, Capsule, Cylinder, Ellipsoid, Solid, Sphere, sizes

mujoco = pytest.importorskip("mujoco")

CORNERS = np.round(np.random.default_rng(0).normal(size=(10, 3)) * [0.1, 0.12, 0.08], 3)
SOLIDS: dict[str, Solid] = {
    "sphere": Sphere(0.12),
    "capsule": Capsule(0.07, 0.3),
    "box": Box(SX([0.2, 0.3, 0.16])),
    "cylinder": Cylinder(0.1, 0.24),
    "ellipsoid": Ellipsoid(SX([0.1, 0.15, 0.07])),
    "hull": hull_of(CORNERS),
}
GEOM = {
    "sphere": 'type="sphere" size="0.12"',
    "capsule": 'type="capsule" size="0.07 0.15"',
    "box": 'type="box" size="0.1 0.15 0.08"',
    "cylinder": 'type="cylinder" size="0.1 0.12"',
    "ellipsoid": 'type="ellipsoid" size="0.1 0.15 0.07"',
    "hull": 'type="mesh" mesh="hull"',
}
NEW = ("ellipsoid", "hull")
PAIRS = [
    (a, b)
    for a, b in combinations_with_replacement(SOLIDS, 2)
    if {a, b} & set(NEW) or {a, b} <= {"box", "cylinder"} or {a, b} == {"capsule", "cylinder"}
]
QUICK = [("box", "box"), ("box", "cylinder"), ("ellipsoid", "hull")]
"""Pairs of the usual test run; the study takes all of them. Each is a program to compile."""


@cache
def kernel(a: str, b: str) -> Kernel:
    program = pair_program(SOLIDS[a], SOLIDS[b])
    p = ProgramBuilder("pair")
    args = [p.input(name, n) for name, n in zip(("x", "y", "sa", "sb"), program.in_sizes, strict=True)]
    p.output("places", p.call(program, *args)[0], (program.out_sizes[0] // PLACE, PLACE))
    return p.kernel()


def places(a: str, b: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """(..., 4, 7) from poses: position and quaternion wxyz, (..., 7)."""
    own = [torch.tensor(sizes(SOLIDS[k]), dtype=x.dtype) for k in (a, b)]
    return kernel(a, b)(x=columns(x), y=columns(y), sa=own[0], sb=own[1]).places


def columns(x: torch.Tensor) -> torch.Tensor:
    """Rotation, column by column, and position, (..., 12)."""
    return torch.cat([rotation(x[..., 3:]).mT.flatten(-2), x[..., :3]], -1)


def rotation(q: torch.Tensor) -> torch.Tensor:
    w, x, y, z = (q / q.norm(dim=-1, keepdim=True)).unbind(-1)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return torch.stack([torch.stack(r, -1) for r in rows], -2)


def random_poses(seed: int, n: int, reach: float) -> torch.Tensor:
    random = np.random.default_rng(seed)
    q = random.normal(size=(n, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    return torch.tensor(np.concatenate([random.uniform(-reach, reach, (n, 3)), q], 1))


class MujocoPair:
    """Two geoms, each on a mocap body."""

    def __init__(self, a: str, b: str):
        vertices = " ".join(f"{v:.17g}" for v in CORNERS.ravel())
        bodies = "".join(f'<body mocap="true"><geom {GEOM[k]}/></body>' for k in (a, b))
        self.model = mujoco.MjModel.from_xml_string(
            f'<mujoco><option ccd_tolerance="1e-10" ccd_iterations="200"/><asset><mesh name="hull" vertex="{vertices}"/></asset>'
            f"<worldbody>{bodies}</worldbody></mujoco>"
        )
        self.data = mujoco.MjData(self.model)

    def distance(self, x: np.ndarray, y: np.ndarray) -> float:
        self.data.mocap_pos[:], self.data.mocap_quat[:] = (x[:3], y[:3]), (x[3:], y[3:])
        mujoco.mj_kinematics(self.model, self.data)
        return mujoco.mj_geomDistance(self.model, self.data, 0, 1, 10.0, np.zeros(6))


def compare(a: str, b: str, n: int) -> None:
    """Apart: the least gap is the distance. Overlapping: it is a depth in one direction, so never less than MuJoCo's least one, and
    mostly that."""
    x, y = random_poses(1, n, 0.5), random_poses(2, n, 0.1)
    found = places(a, b, x, y)
    assert torch.isfinite(found).all()
    gap = found[..., 0].amin(-1).numpy()
    reference = MujocoPair(a, b)
    expected = np.array([reference.distance(u, v) for u, v in zip(x.numpy(), y.numpy(), strict=True)])
    apart, over = expected > 1e-5, expected < -1e-5
    assert apart.sum() > n / 2 and over.sum() > n / 50
    # MuJoCo keeps meshes in single precision, and ends its search for round shapes at 1e-6.
    assert np.abs(gap - expected)[apart].max() < 1e-6
    deeper = expected[over] - gap[over]
    assert deeper.min() > -1e-6
    assert (deeper > 1e-5).mean() < 0.35, "a local least depth should be the exception"
    shallow = over & (expected > -5e-3)
    assert np.all(np.abs(gap - expected)[shallow] < 5e-3)
    normals = found[..., 4:].norm(dim=-1)
    assert (normals - 1).abs().max() < 1e-9


@pytest.mark.parametrize(("a", "b"), QUICK, ids=lambda k: k)
def test_distance_is_mujocos(a: str, b: str) -> None:
    compare(a, b, 300)


@pytest.mark.study
@pytest.mark.parametrize(("a", "b"), PAIRS, ids=lambda k: k)
def test_distance_is_mujocos_in_10000_poses(a: str, b: str) -> None:
    compare(a, b, 10_000)


STILL = [1.0, 0, 0, 0]
TURNED = [np.cos(np.pi / 8), 0, 0, np.sin(np.pi / 8)]


def one(a: str, b: str, x: list[float], y: list[float]) -> np.ndarray:
    return places(a, b, torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)).numpy()


DEGENERATE = {
    "faces aligned, apart": ([0, 0, 0.2, *STILL], 0.04, 4),
    "faces aligned, overlapping": ([0, 0, 0.159, *STILL], -0.001, 4),
    "faces parallel, turned": ([0, 0, 0.159, *TURNED], -0.001, 4),
    "faces aligned, touching": ([0, 0, 0.16, *STILL], 0.0, 4),
    "edge along edge": ([0.2, 0, 0.16, *STILL], 0.0, 2),
    "edge beside edge": ([0.24, 0, 0.19, *STILL], 0.05, 2),
    "corner on corner": ([0.2, 0.3, 0.16, *STILL], 0.0, 1),
    "corner beside corner": ([0.21, 0.32, 0.18, *STILL], 0.03, 1),
    "centres coincide": ([0, 0, 0, *STILL], -0.16, 4),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_equal_boxes_in_degenerate_poses(case: str) -> None:
    """Known distances of boxes 0.2 x 0.3 x 0.16, and how many places share them at least."""
    x, expected, count = DEGENERATE[case]
    gaps = one("box", "box", x, [0, 0, 0, *STILL])[:, 0]
    assert abs(gaps.min() - expected) < 1e-7
    assert (np.abs(gaps - expected) < 1e-6).sum() >= count


def test_manifold_of_stacked_boxes_spans_the_face() -> None:
    found = one("box", "box", [0, 0, 0.1599, *STILL], [0, 0, 0, *STILL])
    corners = {(round(float(x), 6), round(float(y), 6)) for x, y in found[:, 1:3]}
    assert corners == {(sx * 0.1, sy * 0.15) for sx in (-1, 1) for sy in (-1, 1)}
    assert np.allclose(found[:, 4:], [0, 0, 1])


@pytest.mark.parametrize(
    ("tilt", "count"), [(0.0, 4), (np.pi / 2, 2), (0.5, 1)], ids=["standing", "lying", "on its rim"]
)
def test_cylinder_on_a_box(tilt: float, count: int) -> None:
    """Known heights: a cylinder of radius 0.1 and length 0.24 touches a box 0.16 high."""
    reach = 0.12 * np.cos(tilt) + 0.1 * np.sin(tilt)
    y = [0, 0, 0.08 + reach - 1e-4, np.cos(tilt / 2), 0, np.sin(tilt / 2), 0]
    found = one("box", "cylinder", [0, 0, 0, *STILL], y)
    deepest = np.abs(found[:, 0] + 1e-4) < 1e-8
    assert deepest.sum() >= count
    assert np.allclose(found[deepest, 4:], [0, 0, -1], atol=1e-9)


@pytest.mark.parametrize(("a", "b"), QUICK, ids=lambda k: k)
def test_gradients(a: str, b: str) -> None:
    """All numbers of all places that are there, in both poses, apart and overlapping; at poses where the features do not change."""
    x, y = random_poses(3, 40, 0.3), random_poses(4, 40, 0.02)
    found = places(a, b, x, y)[..., 0]
    step = 1e-5
    checked = 0
    for k in range(40):
        there = found[k] < FAR / 2

        def f(u: torch.Tensor, v: torch.Tensor, there: torch.Tensor = there) -> torch.Tensor:
            return places(a, b, u, v)[..., there, :]

        try:
            check_gradients(
                f,
                (x[k], y[k]),
                names=("x", "y"),
                step=step,
                directions=1,
                float32=False,
                tolerances=Tolerances(finite_difference=1e-5),
            )
        except AssertionError as error:
            if not any(word in str(error) for word in ("are uncertain", "on a kink")):
                raise
            continue
        checked += 1
        if checked == 6:
            break
    assert checked == 6


def test_hull_of_a_cube_is_a_box() -> None:
    """Six faces, eight corners; and as a pair it is the box."""
    cube = hull_of(np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.15, 0.15) for z in (-0.08, 0.08)]))
    assert isinstance(cube, Hull)
    assert len({tuple(np.round(np.array(DM(n)).ravel(), 6)) for n in cube.normals}) == 6
    assert all(len(p) == 4 for p in cube.polygons)


def test_large_hulls_are_simplified_and_say_so() -> None:
    ball = np.random.default_rng(1).normal(size=(300, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    with pytest.warns(UserWarning, match="contact uses 32 of them"):
        hull = hull_of(ball)
    assert len(hull.corners) == 32
