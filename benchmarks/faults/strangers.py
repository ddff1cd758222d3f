"""Robots of other people, made up at random: inertias with rounding, taken names, massless bases, macros, many joints."""

from __future__ import annotations

import importlib.util
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.faults.process import track
from benchmarks.measure.harness import Table
from costate.model import ModelError, ModelWarning, load_model
from costate.robot import Robot

NAMES = (
    "world",
    "world_2",
    "floating_base",
    "floating_base_2",
    "base",
    "base_link",
    "root",
    "World",
    "WORLD",
    "joint",
)
"""Names that files have, of which some are those that Costate would take."""
JOINTS = 600
"""Number of joints of the largest robots."""


def _link(name: str, mass: float = 1.0, moments: np.ndarray | None = None, digits: int = 17) -> str:
    if not mass:
        return f'<link name="{name}"/>'
    rows = np.eye(3) * 0.01 if moments is None else moments
    keys = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    inertia = " ".join(f'{k}="{rows[at]:.{digits}g}"' for k, at in keys.items())
    return f'<link name="{name}"><inertial><mass value="{mass:.17g}"/><inertia {inertia}/></inertial></link>'


def _joint(name: str, parent: str, child: str, chance: random.Random) -> str:
    axis, offset = ([chance.gauss(0, 1) for _ in range(3)] for _ in range(2))
    origin = f'<origin xyz="{offset[0]} {offset[1]} {offset[2]}" rpy="{offset[1]} {offset[2]} {offset[0]}"/>'
    kind = chance.choice(("continuous", "continuous", "prismatic"))
    limit = '<limit lower="-1e9" upper="1e9" effort="1e9" velocity="1e9"/>'
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return (
        f'<joint name="{name}" type="{kind}">{origin}<axis xyz="{axis[0]} {axis[1]} {axis[2]}"/>{ends}{limit}</joint>'
    )


def _file(folder: Path, text: str, name: str = "robot.urdf") -> Path:
    path = folder / name
    path.write_text(f'<robot name="robot">{text}</robot>')
    return path


def _rotation(chance: random.Random) -> np.ndarray:
    R, _ = np.linalg.qr([[chance.gauss(0, 1) for _ in range(3)] for _ in range(3)])
    return R


def rounded_inertia(chance: random.Random, folder: Path) -> str:
    """Thin rods and flat plates, whose smallest moments are rounding in a turned frame, with 13 to 17 digits."""
    mass, length = 10 ** chance.uniform(-6, 2), 10 ** chance.uniform(-2, 0.3)
    second = np.diag(mass * length**2 / 12 * np.array([1.0, chance.choice((0.0, 1.0)), 0.0]))  # of the mass along axes
    R = _rotation(chance)
    moments = R @ (np.trace(second) * np.eye(3) - second) @ R.T
    moments *= 1 - chance.choice((0.0, 1e-15, 1e-14))
    path = _file(folder, _link("a") + _link("b", mass, moments, chance.randint(13, 17)) + _joint("j", "a", "b", chance))
    for way in ("refuse", "keep", "repair"):
        found = load_model(path, inertia=way).links[1].inertia.matrix
        if not np.allclose(found, moments, rtol=0.0, atol=1e-11 * np.trace(moments) + 1e-18):
            return f"{way}: the inertia is {found}, not {moments}"
    repaired = np.linalg.eigvalsh(load_model(path, inertia="repair").links[1].inertia.matrix)
    # Moments down to -1e-20 kg m^2 count as rounding (docs/robots.md), and eigenvalues have rounding of their own.
    slack = max(1e-20, 1e-12 * repaired[2])
    body = repaired[0] >= -slack and repaired[0] + repaired[1] >= repaired[2] - slack
    return "" if body else f"repaired moments {repaired} are of no body"


def negative_inertia(chance: random.Random, folder: Path) -> str:
    """Moments that are far from rounding: refused by name, kept as they are, or repaired."""
    values = np.array([-chance.uniform(0.01, 1), chance.uniform(0.1, 1), chance.uniform(0.1, 1)])
    R = _rotation(chance)
    moments = R @ np.diag(values) @ R.T
    path = _file(folder, _link("a") + _link("b", 1.0, moments) + _joint("j", "a", "b", chance))
    try:
        load_model(path)
        return f"principal moments {values} are accepted"
    except ModelError as error:
        if "'b'" not in str(error) or "repair" not in str(error):
            return f"unclear: {error}"
    if not np.allclose(load_model(path, inertia="keep").links[1].inertia.matrix, moments):
        return "kept inertias are others"
    repaired = np.linalg.eigvalsh(load_model(path, inertia="repair").links[1].inertia.matrix)
    return "" if repaired[0] >= -1e-12 and repaired[0] + repaired[1] >= repaired[2] - 1e-12 else f"repaired: {repaired}"


def taken_names(chance: random.Random, folder: Path) -> str:
    """Links and joints with the names of a floating base; the base has to float all the same."""
    links, joints = chance.sample(NAMES, 4), chance.sample(NAMES, 3)
    text = "".join(_link(name) for name in links)
    for k, name in enumerate(joints):
        text += _joint(name, links[chance.randrange(k + 1)], links[k + 1], chance)
    path = _file(folder, text)
    fixed, floating = load_model(path), load_model(path, floating_base=True)
    names = [link.name for link in floating.links], [joint.name for joint in floating.joints]
    if any(len(set(n)) != len(n) for n in names):
        return f"names are used twice: {names}"
    if floating.nv != fixed.nv + 6 or [j.kind for j in floating.joints].count("floating") != 1:
        return f"{floating.nv} velocities instead of {fixed.nv + 6}"
    return "" if load_model(path, floating_base=False).nv == fixed.nv else "the fixed base is another"


def massless_base(chance: random.Random, folder: Path) -> str:
    """A floating base without mass, perhaps with massless links fixed to it, is warned of."""
    text, last = _link("base", 0.0), "base"
    for k in range(chance.randint(0, 3)):
        fixed = f'<parent link="{last}"/><child link="plate{k}"/>'
        text += _link(f"plate{k}", 0.0) + f'<joint name="f{k}" type="fixed">{fixed}</joint>'
        last = chance.choice((last, f"plate{k}"))
    text += _link("arm") + _joint("j", last, "arm", chance)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        load_model(_file(folder, text), floating_base=True)
    words = [str(w.message) for w in told if issubclass(w.category, ModelWarning)]
    return "" if any("floating base" in w and "mass" in w for w in words) else f"no warning but {words}"


def macros(chance: random.Random, folder: Path) -> str:
    """Macro files are expanded by the package xacro, or the message names it; in a .urdf file they are refused."""
    value, name = chance.uniform(0.1, 9.0), chance.choice(("m", "mass_of_it", "x1"))
    space = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    link = f'<link name="a"><inertial><mass value="${{{name}}}"/>{inertia}</inertial></link>'
    inside = f'<xacro:property name="{name}" value="{value}"/>{link}'
    installed = importlib.util.find_spec("xacro") is not None
    for file in ("robot.xacro", "robot.urdf.XACRO", "robot.urdf"):
        path = folder / file
        path.write_text(f'<robot name="r" {space}>{inside}</robot>')
        try:
            if load_model(path).links[0].inertia.mass != value or file == "robot.urdf":
                return f"{file} was read as something else"
        except ModelError as error:
            if (installed and file != "robot.urdf") or "xacro" not in str(error):
                return f"{file}: {error}"
    return ""


def many_joints(chance: random.Random, folder: Path, count: int = JOINTS) -> str:
    """Random trees of hundreds of joints: the torques are those of MuJoCo."""
    import mujoco

    text = _link("l0")
    for k in range(1, count + 1):
        turned = _rotation(chance)
        moments = turned @ np.diag([0.01, 0.02, 0.015]) @ turned.T
        text += _link(f"l{k}", chance.uniform(0.1, 2.0), moments)
        text += _joint(f"j{k}", f"l{max(0, k - 1 - int(chance.expovariate(0.3)))}", f"l{k}", chance)
    path = _file(folder, text)
    robot = Robot(load_model(path))
    drawn = torch.Generator().manual_seed(chance.randrange(10**9))
    q, v = torch.randn(2, count, dtype=torch.float64, generator=drawn)
    tau = robot.inverse_dynamics(q, v, torch.zeros_like(v)).numpy()
    mj = mujoco.MjSpec.from_file(str(path)).compile()  # pyright: ignore[reportAttributeAccessIssue]
    data: Any = mujoco.MjData(mj)  # pyright: ignore[reportAttributeAccessIssue]
    order = [mj.joint(joint.name).id for joint in robot.model.joints]
    data.qpos[order], data.qvel[order] = q.numpy(), v.numpy()
    mujoco.mj_forward(mj, data)  # pyright: ignore[reportAttributeAccessIssue]
    expected = data.qfrc_bias[order]
    far = np.abs(tau - expected).max() / np.abs(expected).max()
    return "" if far < 1e-11 else f"torques differ from MuJoCo's by {far:.1e} of the largest"


CASES: dict[str, tuple[str, Callable[[random.Random, Path], str]]] = {
    "rounding": ("inertias that are positive but for rounding", rounded_inertia),
    "negative": ("inertias that no body can have", negative_inertia),
    "names": ("names that a floating base would take", taken_names),
    "massless": ("floating bases without mass", massless_base),
    "macros": ("macro files", macros),
}
"""Kind -> what it is, and the check of one case, which describes what is wrong."""


def case(check: Callable[[random.Random, Path], str], name: str) -> str:
    """Run one case; describe what is wrong."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return check(random.Random(name), Path(folder))
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def strangers(cases: int, seed: int, large: int, joints: int = JOINTS) -> tuple[Table, int]:
    """Run so many cases of each kind, and so many robots of many joints."""
    rows, wrong = [], 0
    checks = {key: (title, check, cases) for key, (title, check) in CASES.items()}
    checks["joints"] = (f"trees of {joints} joints, against MuJoCo", lambda c, f: many_joints(c, f, joints), large)
    for key, (title, check, count) in checks.items():
        found = [case(check, f"{key} {seed} {k}") for k in track(range(count), title)]
        for why in filter(None, found):
            print(f"{key}: {why}", flush=True)
        wrong += sum(map(bool, found))
        rows.append((title, count, sum(map(bool, found))))
    note = (
        "Robots made at random (`--seed`). Inertias: rods and plates in turned frames must be read as they are; others must be "
        "refused by name, kept, or repaired to ones that a body can have. Bases must float whatever names are taken, and be warned "
        "of without mass. Torques of large trees (inverse dynamics) must be those of MuJoCo to 1e-11 of the largest."
    )
    return Table("Robots made at random", ("", "robots", "wrong"), tuple(rows), note), wrong
