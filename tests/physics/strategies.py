"""Random robots and states for hypothesis: the shape of the tree is drawn (and shrinks), the numbers follow a seed."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck
from hypothesis import strategies as st

from costate.model.joint import JOINT_SIZES, Joint, Mimic
from costate.model.model import Inertia, Link, Model
from costate.model.transform import Transform

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
"""Health checks that tracing a whole robot per example sets off."""

KINDS = ["revolute", "continuous", "prismatic", "planar", "spherical", "floating", "fixed"]


@st.composite
def random_models(
    draw: st.DrawFn, min_joints: int = 1, max_joints: int = 40, floating: bool | None = None, mimics: bool = False
) -> Model:
    """Draw trees with all kinds of joints, branches, oblique and coordinate axes, fixed and massless links."""
    n = draw(st.integers(min_joints, max_joints))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    is_floating = draw(st.booleans()) if floating is None else floating
    usual = n > 12 or draw(st.booleans())  # mostly one-dimensional joints, as on robots
    kinds, parents = [], []
    for i in range(n):
        if i == 0 and is_floating:
            kinds.append("floating")
        else:
            kinds.append(draw(st.sampled_from(KINDS[:3] if usual and rng.random() < 0.9 else KINDS)))
        # parents close by make long chains, far away ones make bushes
        parents.append(draw(st.integers(max(0, i - 3), i)))
    if is_floating:
        parents = [max(p, 1) if i else 0 for i, p in enumerate(parents)]
    links = [Link("world" if is_floating else "link0", random_inertia(rng) if not is_floating else Inertia())]
    joints: list[Joint] = []
    for i, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        links.append(Link(f"link{i + 1}", _inertia(rng, kinds, parents, i)))
        joints.append(_joint(rng, i, kind, links[parent].name, joints if mimics else []))
    gravity = rng.normal(size=3) * 9.81 if rng.random() < 0.3 else np.array([0.0, 0.0, -9.81])
    return Model("random", tuple(links), tuple(joints), gravity)


def _inertia(rng: np.random.Generator, kinds: list[str], parents: list[int], i: int) -> Inertia:
    """Return a random inertia, or none for some fixed links, and for some moving links that carry a link with mass.

    So the mass matrix is nearly always regular; it is not if a massless link joins two joints that move alike.
    """
    if kinds[i] == "fixed":
        return Inertia() if rng.random() < 0.5 else random_inertia(rng)
    carries = any(p == i + 1 and kinds[k] in KINDS[:3] and (k + i) % 2 for k, p in enumerate(parents))
    if i % 2 == 0 and carries and kinds[i] in KINDS[:3] and rng.random() < 0.5:
        return Inertia()
    return random_inertia(rng)


def random_inertia(rng: np.random.Generator) -> Inertia:
    """Return the inertia of a random cloud of points, which is physically possible; half of them have zeros in it."""
    points = rng.normal(size=(6, 3)) * rng.uniform(0.05, 0.3, size=3)
    masses = rng.uniform(0.1, 1.0, size=6)
    com = masses @ points / masses.sum()
    r = points - com
    matrix = np.sum([m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, r, strict=True)], axis=0)
    if rng.random() < 0.5:
        matrix, com = np.diag(np.diag(matrix)), com * (rng.random(3) < 0.5)
    return Inertia(float(masses.sum()), com, matrix)


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return Q * np.linalg.det(Q)


def _joint(rng: np.random.Generator, i: int, kind: str, parent: str, others: list[Joint]) -> Joint:
    oblique = rng.random() < 0.5
    axis = rng.normal(size=3) if oblique else np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])
    rotation = random_rotation(rng) if rng.random() < 0.5 else _quarter_turns(rng)
    translation = rng.normal(size=3) * 0.3 * (rng.random(3) < 0.6)
    nv = JOINT_SIZES[kind][1]
    leaders = [j for j in others if j.kind == kind and j.mimic is None]
    is_follower = kind in KINDS[:3] and bool(leaders) and rng.random() < 0.5
    mimic = None
    if is_follower:
        mimic = Mimic(leaders[rng.integers(len(leaders))].name, float(rng.normal()), float(rng.normal()))
    return Joint(
        f"joint{i}",
        kind,
        parent,
        f"link{i + 1}",
        Transform(rotation, translation),
        axis / np.linalg.norm(axis),
        lower=np.full(nv, -np.inf),
        upper=np.full(nv, np.inf),
        damping=float(rng.uniform(0, 1)),
        friction=float(rng.uniform(0, 1)),
        armature=float(rng.uniform(0, 0.2)) if nv and rng.random() < 0.3 else 0.0,
        stiffness=float(rng.uniform(0, 5)) if rng.random() < 0.5 else 0.0,
        rest=float(rng.normal()),
        mimic=mimic,
    )


def _quarter_turns(rng: np.random.Generator) -> np.ndarray:
    """Return a signed permutation with determinant 1."""
    P = np.eye(3)[rng.permutation(3)] * rng.choice([-1.0, 1.0], size=3)
    return P * np.linalg.det(P)


def random_state(model: Model, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, v and a third vector of nv numbers (accelerations or torques)."""
    rng = np.random.default_rng(seed)
    q = np.zeros(model.nq)
    for joint, start in zip(model.joints, model.q_index, strict=True):
        own = rng.normal(size=joint.nq)
        if joint.kind in ("spherical", "floating"):
            own[-4:] /= np.linalg.norm(own[-4:])
        if joint.nq:
            q[start : start + joint.nq] = own
    return q, rng.normal(size=model.nv), rng.normal(size=model.nv)


def tree_of(*kinds: str) -> Model:
    """Return a chain of joints of the given kinds with every parameter non-zero."""
    rng = np.random.default_rng(7)
    links = [Link("link0")]
    joints = []
    for i, kind in enumerate(kinds):
        axis = rng.normal(size=3)
        nv = JOINT_SIZES[kind][1]
        origin = Transform(random_rotation(rng), rng.normal(size=3) * 0.3)
        joints.append(
            Joint(
                f"joint{i}",
                kind,
                f"link{i}",
                f"link{i + 1}",
                origin,
                axis / np.linalg.norm(axis),
                lower=np.full(nv, -np.inf),
                upper=np.full(nv, np.inf),
                damping=0.3,
                friction=0.2,
                armature=0.1,
                stiffness=0.7,
                rest=0.4,
            )
        )
        links.append(Link(f"link{i + 1}", random_inertia(rng)))
    return Model("chain", tuple(links), tuple(joints))
