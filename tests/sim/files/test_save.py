"""Worlds that are written to files and read again: the same text, and the same motion, bit by bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

import costate as cs
from benchmarks.study_bits import ACTUATORS, CONTACTS, TETRA, acting, dog, dropped, landing, pile, tied
from costate.model.surface import Softness
from costate.sim.files.classes import CLASSES

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
s = cs.shapes


def tetra(folder: Path) -> Path:
    path = folder / "tetra.obj"
    path.write_text(TETRA)
    return path


def hilly(folder: Path) -> cs.World:
    """A mesh on a floor, a ball on hills, and a composed solid on a pierced block."""
    heights = 0.03 * np.sin(np.arange(12.0))[:, None] + np.zeros(12)
    block = s.difference(s.box((0.5, 0.5, 0.2), (3, 0, -0.1)), s.cylinder(0.05, 0.5, (3, 0, 0)))
    apart = cs.model.Transform(translation=np.array([3.0, 0.1, 0.2]))
    return cs.World(
        bodies=[
            cs.Body("rock", [s.mesh(tetra(folder))], mass=1.0, friction=0.4),
            cs.Body("ball", [s.sphere(0.1)], mass=1.0),
            cs.Body("two", [s.union(s.sphere(0.1), s.sphere(0.08, (0.1, 0, 0)))], 1.0, np.eye(3) / 100, pose=apart),
        ],
        scenery=[
            cs.Static("floor", s.plane()),
            cs.Static("hills", s.heightfield(heights, (2.0, 2.0), color=(0.1, 0.5, 0.2, 1.0))),
            cs.Static("block", block, visible=False),
        ],
        collide=[("rock", "floor"), ("ball", "hills"), ("two", "block")],
        contact=cs.Compliant(),
        parameters=["friction", "mass:rock/body"],
        dt=0.004,
    )


def arms(folder: Path) -> cs.World:
    """Two robots of one kind with different actuators, one made in memory, at poses."""
    again = cs.Robot(cs.load_robot("two_link").model.with_gravity(np.array([0.0, 0.0, -3.0])))
    beside = cs.model.Transform(translation=np.array([0.0, 0.5, 0.1]))
    return cs.World(
        {"left": cs.load_robot("two_link"), "right": again},
        actuators={"left": cs.DCMotor(2.0, 10.0, 5.0, 0.001), "right": cs.General(3.0, activation="filter", times=0.1)},
        gravity=(0, 0, -3),
        poses={"right": beside},
        contact=cs.Compliant(),
        collide=[],
        integrator="implicit",
        constraints=[cs.Couple("left/" + again.joint_names[0], "right/" + again.joint_names[0])],
        check=False,
    )


LISTS = """<mujoco model="feeler"><worldbody><geom name="floor" type="plane" size="0 0 1"/>
  <body name="one" pos="0 0 0.09"><freejoint/><geom name="one" size="0.1"/>
    <geom name="feeler" size="0.2" contype="0" conaffinity="0"/></body></worldbody>
  <contact><exclude body1="one" body2="world"/><pair geom1="feeler" geom2="floor" condim="1"/></contact></mujoco>"""


def lists(folder: Path) -> cs.World:
    """A file that excludes some contacts with its floor, and lists others."""
    path = folder / "lists.xml"
    path.write_text(LISTS)
    return cs.load_world(path)


def ruled() -> cs.World:
    """A ball that a rule lets through the first of two floors."""
    ball = cs.Body("ball", [s.sphere(0.1)], mass=1.0)
    floors = [cs.Static("high", s.plane()), cs.Static("low", s.plane((0, 0, -0.101)))]
    return cs.World(bodies=[ball], scenery=floors, collide=lambda a, b: "high" not in (a, b), contact=cs.Compliant())


MOVED: dict[str, Callable[[Path], cs.World]] = {
    "hilly": hilly,
    "arms": arms,
    "lists": lists,
    "hopper": lambda _: cs.load_world(ASSETS / "hopper.xml"),
    "a rule for pairs": lambda _: ruled(),
    "tendon and constraint": lambda _: tied(cs.Compliant()),
}
WRITTEN: dict[str, Callable[[Path], cs.World]] = {
    **{f"contact {name}": lambda _, c=contact: landing(c, "semi_implicit") for name, contact in CONTACTS.items()},
    **{f"actuator {name}": lambda _, a=actuator: acting(a) for name, actuator in ACTUATORS.items()},
    **{f.stem: lambda _, f=f: cs.load_world(f) for f in sorted(ASSETS.glob("*.xml"))},
    "grid": lambda folder: dropped(cs.Hard(), s.sphere(0.1), cs.Static("cup", s.mesh(tetra(folder), contact="grid"))),
    "quadruped": lambda _: dog(cs.Hard()),
    "pile": lambda _: pile(),
    "softness": lambda _: landing(cs.Newton(softness=Softness((0.03, 1.0))), "implicit"),
    "no contact": lambda _: cs.World([cs.load_robot("ur5")], contact=None),
    "nothing": lambda _: cs.World(),
}


@pytest.mark.filterwarnings("ignore::costate.model.ModelWarning")
@pytest.mark.parametrize("name", [*MOVED, *WRITTEN])
def test_read_and_written_again_it_is_the_same_file(name: str, tmp_path: Path):
    world = (MOVED | WRITTEN)[name](tmp_path)
    world.save(tmp_path / "first" / "world.json")
    again = cs.load_world(tmp_path / "first" / "world.json")
    again.save(tmp_path / "second")  # a folder, for a file of that name
    files = [sorted(p.relative_to(tmp_path / k) for p in (tmp_path / k).rglob("*")) for k in ("first", "second")]
    assert files[0] == files[1]
    for file in files[0]:
        one, other = tmp_path / "first" / file, tmp_path / "second" / file
        assert one.is_dir() or one.read_bytes() == other.read_bytes()
    assert repr(again) == repr(world)
    assert again.shape_names == world.shape_names
    assert again.setup.scene.pairs == world.setup.scene.pairs


@pytest.mark.parametrize("name", MOVED)
def test_it_moves_the_same_bit_by_bit(name: str, tmp_path: Path):
    world = MOVED[name](tmp_path)
    world.save(tmp_path / "saved")
    again = cs.load_world(tmp_path / "saved")
    torch.manual_seed(0)
    state = world.initial_state(batch=3)
    state[:, world.nq :] += 0.1 * torch.randn(3, world.nx - world.nq, dtype=state.dtype)
    assert torch.equal(state[0, : world.nq], again.initial_state()[: again.nq])
    controls = 0.1 * torch.randn(4, 3, world.nu, dtype=state.dtype)
    found = []
    for w in (world, again):
        x, u = state.clone().requires_grad_(), controls.clone().requires_grad_()
        states = w.rollout(x, u)
        for file in tmp_path.glob("*.*"):
            file.unlink()  # the copy needs none of the files that the world was made from
        found.append((states.detach(), *torch.autograd.grad(states.square().sum(), (x, u), allow_unused=True)))
    for one, other in zip(*found, strict=True):
        assert one is other is None or torch.equal(one, other)


def test_options_of_a_saved_world(tmp_path: Path):
    hilly(tmp_path).save(tmp_path)
    egg = cs.Body("egg", [s.sphere(0.1)], mass=1.0)
    world = cs.load_world(tmp_path, dt=0.01, bodies=[egg], parameters=[])
    assert (world.dt, world.setup.parameters) == (0.01, ())
    assert {"egg/body/0", "rock/body/0"} <= set(world.shape_names)


def test_number_types_are_kept(tmp_path: Path):
    world = ruled()
    world.save(tmp_path / "a")
    world.float().save(tmp_path / "b")
    assert cs.load_world(tmp_path / "a").initial_state().dtype == torch.get_default_dtype()
    assert cs.load_world(tmp_path / "b").initial_state().dtype == torch.float32


# --- what cannot be written -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mine(cs.Compliant):
    """A contact model from outside of the package."""


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cs.World(contact=Mine()), "contact is a .*Mine, which cannot be saved"),
        (lambda: cs.World([learning()]), "learns mass of tip.*identified_model"),
    ],
)
def test_what_cannot_be_saved_is_named(make, message: str, tmp_path: Path):
    with pytest.raises(ValueError, match=message):
        make().save(tmp_path / "world.json")
    assert list(tmp_path.iterdir()) == []


def learning() -> cs.Robot:
    robot = cs.load_robot("pendulum1")
    robot.learn(robot.link_names[-1], "mass", cs.params.Positive(init=1.0))
    return robot


# --- files that were changed ------------------------------------------------------------------------------------------


def changed(file: Path, change: Callable[[dict], object]) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format="other"), "is no world"),
        (lambda c: c.update(version=99), "version 99"),
        (lambda c: c["world"].pop("dt"), "has no 'dt'"),
        (lambda c: c["world"].update(command="rm"), "no 'command'"),
        (lambda c: c["world"].update(robots=[1]), "expected name -> Model"),
        (lambda c: c["world"].update(robots={"a": 1}), "is no Model"),
        (lambda c: c["world"]["bodies"][0].update({"$": "os.system"}), "unknown class 'os.system'"),
        (lambda c: c["world"]["bodies"][0].update(mass="heavy"), r"bodies\[0\].mass is 'heavy'; expected float"),
        (lambda c: c["world"]["bodies"][0].update(cost=1), "Body has no field 'cost'"),
        (lambda c: c["world"]["bodies"][0]["shapes"][0].update(mesh="../../etc/passwd"), "not in the folder"),
        (lambda c: c["world"]["bodies"][0]["shapes"][0].update(mesh="world.meshes/.."), "not in the folder"),
        (lambda c: c["world"]["bodies"][0]["shapes"][0].update(mesh="world.meshes/none.obj"), "no such file"),
        (lambda c: c["world"]["bodies"][0]["shapes"].append({"$": "again", "#": 77}), "does not come before"),
        (lambda c: c["world"]["scenery"][1]["shape"]["heights"].update(name="x"), "array 'x' is not in"),
        (lambda c: c.update(arrays="0"), "belongs to an array file world.safetensors"),
    ],
)
def test_damaged_files_are_refused(change, message: str, tmp_path: Path):
    hilly(tmp_path).save(tmp_path)
    changed(tmp_path / "world.json", change)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        cs.load_world(tmp_path)


def test_nested_without_end(tmp_path: Path):
    file = tmp_path / "world.json"
    cs.World().save(file)
    deep = "[" * 100_000 + "]" * 100_000
    file.write_text(file.read_text().replace('"bodies": []', f'"bodies": {deep}'))
    with pytest.raises(ValueError, match="nested more than 100 deep"):
        cs.load_world(file)


def test_every_class_has_a_name_of_its_own():
    assert len(set(CLASSES.values())) == len(CLASSES)
