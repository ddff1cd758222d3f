"""No gradient is dropped in silence: every number of every public class and function either takes a tensor that requires a
gradient, or refuses it and says what to use instead. Tensors without a gradient and NumPy's scalars are numbers like any other."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

import costate as cs
from costate.model import Actuator, GeneralActuator, Inertia, Joint, Link, Mimic, Model, Shape
from costate.model.actuation.transmission import OnJoint
from costate.model.surface import Bounds, Softness, Surface

BALL = cs.shapes.sphere(0.1)
INERTIA = Inertia(1.0, np.zeros(3), np.eye(3))
HINGE = Joint("hinge", "revolute", "base", "rod", rest_at=np.zeros(1), efforts=(-1.0, 1.0))
ROBOT = cs.Robot(Model("arm", (Link("base"), Link("rod", INERTIA, (BALL,), (BALL,))), (HINGE,), home=np.zeros(1)))
FORMULA: Any = GeneralActuator("motor", OnJoint("hinge", (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)))
EXAMPLES: list[Any] = [
    cs.Hard(impacts=2), cs.PGS(impacts=2), cs.Compliant(), cs.Newton(impratio=1.0),
    cs.Torque(1.0), cs.Motor(limit=1.0), cs.DCMotor(1.0, 2.0, limit=3.0), cs.PositionServo(1.0, 2.0, limit=3.0),
    cs.VelocityServo(1.0, limit=3.0), cs.Affine(controls=(-1.0, 1.0), torques=(-1.0, 1.0), limit=1.0),
    cs.General((1.0, 2.0, 3.0), (1.0, 2.0, 3.0), times=(1.0, 2.0, 3.0), activations=(-1.0, 1.0), controls=(-1.0, 1.0),
               forces=(-1.0, 1.0), limit=1.0),
    cs.Muscle(), cs.Latency(2),
    cs.Connect("a", "b", point_b=(0.0, 0.0, 0.0), time_constant=0.1), cs.Distance("a", "b", length=1.0, time_constant=0.1),
    cs.Weld("a", "b", cs.Transform.at((0, 0, 1)), time_constant=0.1), cs.Couple("a", "b", time_constant=0.1),
    cs.FixedTendon("t", {"a": 1.0}, rest=(0.0, 1.0), efforts=(-1.0, 1.0), lower=0.0, upper=1.0, max_effort=1.0),
    cs.SpatialTendon("t", [cs.Via("a"), cs.Via("b")], rest=1.0, lower=0.0, upper=1.0, max_effort=1.0, efforts=(0.0, 1.0)),
    cs.Via("a"), cs.Wrap("a", 0.1), cs.Pulley(),
    cs.Body("b", [BALL], 1.0, np.eye(3), friction=0.5), cs.Static("s", BALL, friction=0.5), cs.Transform(),
    INERTIA, HINGE, Link("rod"), Mimic("hinge"), ROBOT.model, Softness(), Surface(), Bounds(),
    Shape("box", np.ones(3), friction=0.5, heights=np.zeros((2, 2)), color=(0.0, 0.0, 0.0, 1.0)),
    Actuator("m", "hinge", 1.0), FORMULA,
    cs.sensors.IMU(link="a"), cs.sensors.RangeFinder(link="a"),
]  # fmt: skip
WORKS = {"Lag": "the gradient reaches its time constant", "Noise": "the gradient reaches its numbers"}
NO_NUMBERS = ("Sensor", "ContactForce", "JointPosition", "JointVelocity", "LinkPose", "LinkVelocity", "Touch")

INSTEAD: dict[tuple[str, str], str] = {
    ("Hard", "friction"): r"World\(parameters=\['friction'\]\)",
    ("Hard", "restitution"): r"parameters=\['restitution'\]",
    ("PGS", "friction"): r"World\(parameters=\['friction'\]\)",
    ("PGS", "restitution"): r"parameters=\['restitution'\]",
    ("Compliant", "stiffness"): r"parameters=\['stiffness'\]",
    ("Newton", "friction"): r"parameters=\['friction'\]",
    ("Softness", "solref"): r"parameters=\['solref'\]",
    ("Motor", "gear"): r"parameters=\['actuator_gear'\]",
    ("PositionServo", "stiffness"): r"parameters=\['actuator_stiffness'\]",
    ("Torque", "limit"): r"parameters=\['actuator_limit'\]",
    ("Body", "mass"): r"mass of body 'b'.*parameters=\['mass:b/body'\]",
    ("Body", "inertia"): r"parameters=\['inertia:b/body'\]",
    ("Body", "com"): r"parameters=\['com:b/body'\]",
    ("Body", "pose"): r"write it into the state.*world\.coordinates\('b'\)",
    ("Body", "friction"): r"parameters=\['friction:b'\]",
    ("Static", "pose"): r"parameters=\['position:s'\]",
    ("Shape", "size"): r"parameters=\['size:SHAPE'\]",
    ("Inertia", "mass"): r"robot\.learn\('LINK', 'mass', module\).*parameters=\['mass:ROBOT/LINK'\]",
    ("Joint", "damping"): r"robot\.learn\('hinge', 'damping', module\).*parameters=\['damping:ROBOT/hinge'\]",
    ("Joint", "origin"): r"robot\.learn\('hinge', 'translation', module\)",
    ("Model", "gravity"): r"parameters=\['gravity'\]",
}


def numbers(example: Any) -> list[str]:
    """Return the fields that hold numbers: one, several, a pose, or names with numbers."""
    found = []
    for f in fields(example):
        value = getattr(example, f.name)
        value = list(value.values()) if isinstance(value, dict) else value
        if isinstance(value, cs.Transform) or (not isinstance(value, bool | str) and _numeric(value)):
            found.append(f.name)
    return found


def _numeric(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "fiu" and np.size(value) > 0
    except ValueError:  # things of several kinds
        return False


def as_tensors(value: Any, **options: Any) -> Any:
    if isinstance(value, cs.Transform):
        return torch.tensor(value.matrix, **options)
    if isinstance(value, dict):
        return {key: torch.tensor(float(x), **options) for key, x in value.items()}
    return torch.tensor(np.asarray(value, float), **options)


CASES = [(example, name) for example in EXAMPLES for name in numbers(example)]
NAMES = [f"{type(example).__name__}.{name}" for example, name in CASES]


def test_all_public_classes_are_looked_at() -> None:
    known = {type(x).__name__ for x in EXAMPLES} | set(WORKS) | set(NO_NUMBERS)
    public = [getattr(place, name) for place in (cs, cs.model, cs.sensors) for name in place.__all__]
    assert {x.__name__ for x in public if inspect.isclass(x) and is_dataclass(x)} <= known
    assert len(CASES) > 150
    assert set(INSTEAD) <= {(type(example).__name__, name) for example, name in CASES}


@pytest.mark.parametrize(("example", "name"), CASES, ids=NAMES)
def test_gradients_are_not_dropped(example: Any, name: str) -> None:
    given = as_tensors(getattr(example, name), requires_grad=True)
    with pytest.raises(TypeError, match=INSTEAD.get((type(example).__name__, name), "requires a gradient")):
        replace(example, **{name: given})
    several = given.unbind() if isinstance(given, torch.Tensor) and given.dim() == 1 else None
    if several:  # in a list, too
        with pytest.raises(TypeError, match="requires a gradient"):
            replace(example, **{name: list(several)})


@pytest.mark.parametrize(("example", "name"), CASES, ids=NAMES)
def test_tensors_and_numpy_scalars_are_numbers(example: Any, name: str) -> None:
    value = getattr(example, name)
    ways = [as_tensors(value)]
    if isinstance(value, float | int):
        ways += [np.float32(value), np.array(value), torch.tensor([value])]
        ways += [np.int64(value), torch.tensor(int(value))] if np.isfinite(value) and value == int(value) else []
    for way in ways:
        found = getattr(replace(example, **{name: way}), name)
        if isinstance(value, cs.Transform):
            np.testing.assert_array_equal(found.matrix, value.matrix)
        elif isinstance(value, dict):
            assert found == value
        else:
            assert isinstance(found, np.ndarray if isinstance(value, np.ndarray) else tuple | list | float | int)
            np.testing.assert_allclose(np.asarray(found, float), np.asarray(value, float), rtol=1e-7)
            assert isinstance(value, np.ndarray | list) or hash(found) is not None


def grad(*values: float) -> Any:
    found = torch.tensor(values)
    return (found if len(values) > 1 else found.squeeze()).requires_grad_()


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "sphere": (lambda: cs.shapes.sphere(grad(0.1)), "size:SHAPE"),
    "box": (lambda: cs.shapes.box(grad(0.1, 0.2, 0.3)), "size:SHAPE"),
    "box of a list": (lambda: cs.shapes.box([grad(0.1), 0.2, 0.3]), "size:SHAPE"),
    "cylinder": (lambda: cs.shapes.cylinder(0.1, grad(0.2)), "size:SHAPE"),
    "capsule": (lambda: cs.shapes.capsule(grad(0.1), 0.2), "size:SHAPE"),
    "ellipsoid": (lambda: cs.shapes.ellipsoid(grad(0.1, 0.2, 0.3)), "size:SHAPE"),
    "socket": (lambda: cs.shapes.socket(0.1, grad(0.2), 0.1, 0.01), "size:SHAPE"),
    "heightfield": (lambda: cs.shapes.heightfield([grad(0.0, 0.1), grad(0.0, 0.1)], (1, 1)), "heights"),
    "mesh": (lambda: cs.shapes.mesh("none.stl", grad(2.0)), "scale"),
    "offset": (lambda: cs.shapes.offset(BALL, grad(0.1)), "composed"),
    "moved": (lambda: cs.shapes.moved(BALL, grad(0, 0, 1.0)), "composed"),
    "position of a shape": (lambda: cs.shapes.plane(grad(0, 0, 1.0)), "position:SHAPE"),
    "rpy of a shape": (lambda: cs.shapes.plane(rpy=(grad(0.1), 0, 0)), "position:SHAPE"),
    "quaternion of a shape": (lambda: cs.shapes.box((1, 1, 1), quaternion=grad(0, 0, 0, 1.0)), "position:SHAPE"),
    "friction of a shape": (lambda: cs.shapes.plane(friction=grad(0.5)), "friction:SHAPE"),
    "position of a body": (lambda: cs.Body("b", [BALL], 1.0, position=grad(0, 0, 1.0)), "into the state"),
    "of a body on a slide": (
        lambda: cs.Body("b", [BALL], 1.0, joint="planar", position=grad(0, 0, 1.0)),
        "translation:b/joint",
    ),
    "rpy of a body": (lambda: cs.Body("b", [BALL], 1.0, rpy=(0, 0, grad(0.1))), "into the state"),
    "quaternion of static geometry": (lambda: cs.Static("s", BALL, quaternion=grad(0, 0, 0, 1.0)), "position:s"),
    "pose of a robot": (lambda: cs.World([ROBOT], poses=[(0, 0, grad(1.0))]), "translation:arm/base"),
    "pose of a floating robot": (
        lambda: cs.World([cs.load_robot("laikago")], poses={"laikago": grad(0, 0, 1.0)}),
        "into the state",
    ),
    "dt": (lambda: cs.World([ROBOT], dt=grad(0.01)), "dt is a tensor that requires a gradient"),
    "gravity of a world": (lambda: cs.World([ROBOT], gravity=grad(0, 0, -9.81)), r"parameters=\['gravity'\]"),
    "gravity of a robot": (lambda: cs.load_robot("ur5", gravity=grad(0, 0, -9.81)), "gravity"),
    "least value of a parameter": (lambda: cs.params.Positive(minimum=grad(0.1)), "minimum"),
    "range of a parameter": (lambda: cs.params.Bounded(grad(0.1), 1.0), "lower"),
}


@pytest.mark.parametrize("call", CALLS)
def test_calls(call: str) -> None:
    fn, message = CALLS[call]
    with pytest.raises(TypeError, match=f"requires a gradient.*{message}" if "gradient" not in message else message):
        fn()


def test_a_world_of_tensors_is_that_of_numbers() -> None:
    """All constants as tensors and NumPy's scalars: the same step, to the last bit."""

    def world(number: Callable[[float], Any], vector: Callable[[Any], Any]) -> cs.World:
        shape = cs.shapes.box(vector((0.2, 0.3, 0.1)), position=vector((0, 0, 0.01)), friction=number(0.25))
        body = cs.Body("b", [shape], number(1.5), position=vector((0, 0, 0.0625)), rpy=vector((0, 0, 0.5)))
        ground = cs.Static("ground", cs.shapes.plane(), vector((0, 0, 0.0)))
        contact = cs.PGS(friction=number(0.5), restitution=number(0.25))
        return cs.World(
            [cs.load_robot("two_link")], [body], [ground], cs.PositionServo(number(4.0), number(0.5)), contact,
            dt=number(0.0078125), gravity=vector((0, 1.0, -9.0)), poses=[vector((0, 0, 2.0))],
        )  # fmt: skip

    plain = world(float, tuple)
    expected = plain.step(plain.initial_state())
    for number, vector in ((torch.tensor, torch.tensor), (np.float32, np.array)):
        same = world(number, vector)
        state = same.initial_state()
        torch.testing.assert_close(same.step(state), expected, rtol=0, atol=1e-8 if number is torch.tensor else 1e-12)


@pytest.mark.parametrize("what", WORKS)
def test_what_takes_gradients(what: str) -> None:
    number: Any = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    values = torch.ones(5, 2, dtype=torch.float64)
    if what == "Lag":
        out = cs.Lag(number).apply(values, 0.1)
    else:
        out = cs.sensors.Noise(gaussian=number, bias=number, walk=number).apply(
            values, torch.Generator().manual_seed(0), 0.1
        )  # type: ignore[arg-type]
    (slope,) = torch.autograd.grad(out.sum(), number)
    assert slope.abs() > 0
