"""Wirings: names, and what mistakes are answered with."""

from __future__ import annotations

import pytest

import costate as cs

GROUND = cs.Static("ground", cs.shapes.plane())


def world(**options) -> cs.World:
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], mass=1.0)
    return cs.World([cs.load_robot("pendulum2")], bodies=[ball], scenery=[GROUND], **options)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("joint_torqe",), {"on": "joint_1"}, "did you mean 'joint_torque'"),
        (("joint_torque",), {}, "belongs to joints: say which with on="),
        (("joint_torque",), {"on": "joint_11"}, "did you mean"),
        (("joint_torque",), {"on": "joint_1", "inputs": ["sped"]}, "did you mean 'speed'"),
        (
            ("joint_torque",),
            {"on": "joint_1", "inputs": ["slip"]},
            "is one of contacts, but the network acts on joints",
        ),
        (("joint_torque",), {"on": "joint_1", "inputs": ["slip:ball"]}, "known of the contact itself alone"),
        (("joint_torque",), {"on": "joint_1", "inputs": ["speed", "speed"]}, "listed twice"),
        (("drag",), {"on": "link_2", "inputs": ["velocity.w"]}, "no component 'w'"),
        (("normal_force",), {"on": "bal"}, "did you mean 'ball'"),
        (("normal_force",), {"constraints": "dissipative"}, "has no speed that a dissipative network could oppose"),
        (("normal_force",), {"replace": True}, "Hard solves for its forces"),
        (("normal_force",), {"reach": 0.0}, "expected a positive distance"),
        (("contact_stiffness",), {}, "Hard has no stiffness of contacts: use contact=Compliant"),
        (("friction_force",), {"inputs": ["normal_force"]}, "finds its normal forces after its networks"),
    ],
    ids=lambda x: str(x)[:40],
)
def test_mistakes(arguments, options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        world().augment(*arguments, **options)


def test_worlds_without_such_a_thing_say_so() -> None:
    with pytest.raises(ValueError, match="has no contact model"):
        world(contact=None).augment("normal_force")
    with pytest.raises(ValueError, match="no shapes that can touch"):
        cs.World([cs.load_robot("pendulum2")], contact=cs.PGS()).augment("normal_force")
    with pytest.raises(ValueError, match="cannot be solved pair by pair: a network acts on its contacts"):
        crowd = world(contact=cs.PGS())
        crowd.augment("friction_coefficient")
        crowd.step(crowd.initial_state())
    with pytest.raises(ValueError, match=r"which worlds have: use world.augment"):
        cs.load_robot("pendulum2").augment("actuator_force", on="joint_1")


def test_names_may_be_short_and_are_told_in_full() -> None:
    w = world()
    w.augment("joint_torque", on=["joint_1", "pendulum2/joint_2"], inputs=["speed", "velocity:link_2"])
    w.augment("joint_torque", on="joint_1")
    w.augment("joint_torque", on="joint_1")
    w.augment("friction_coefficient", on="ball", name="mu")
    assert list(w.networks) == [
        "joint_torque:pendulum2/joint_1+1",
        "joint_torque:pendulum2/joint_1",
        "joint_torque:pendulum2/joint_1_2",
        "mu",
    ]
    first = w.networks["joint_torque:pendulum2/joint_1+1"]
    assert first.inputs == ("speed", *(f"velocity.{x}:pendulum2/link_2" for x in "xyz"))
    with pytest.raises(ValueError, match="there is a network 'mu' already"):
        w.augment("friction_coefficient", name="mu")
    with pytest.raises(ValueError, match="networks of this world are"):
        w.setup.default("network:nu")


def test_a_residual_module_of_a_robot_is_said_not_to_act_in_a_world() -> None:
    robot = cs.load_robot("pendulum2")
    robot.augment(cs.residual.JointFriction(2))
    with pytest.warns(UserWarning, match="do not act in a world"):
        cs.World([robot], contact=None)
