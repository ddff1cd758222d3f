"""Networks inside of a step: every quantity, its gradients, and that silence changes nothing."""

from __future__ import annotations

import pytest
import torch
from tests.gradients import check_gradients

import costate as cs
from costate.augment.network import Network

GROUND = cs.Static("ground", cs.shapes.plane())
STATE = torch.tensor([0.3, -0.4, 0.5, 0.8], dtype=torch.float64)


def arm(**options) -> cs.World:
    return cs.World([cs.load_robot("pendulum2")], **{"contact": None, "dt": 0.01, **options})


def ball(contact: cs.ContactModel) -> tuple[cs.World, torch.Tensor]:
    """Return a world with a ball on the ground, and its state."""
    body = cs.Body("ball", [cs.shapes.sphere(0.1)], mass=1.0)
    world = cs.World(bodies=[body], scenery=[GROUND], contact=contact, dt=0.002)
    state = world.initial_state(dtype=torch.float64)
    return world, state


def disturb(network: Network, size: float = 0.5, seed: int = 0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    vector = network.vector().detach().double()
    return vector + size * torch.randn(vector.shape, generator=random, dtype=torch.float64)


ARMS = {
    "joint_torque": {"on": "joint_2", "inputs": ["speed", "position", "load", "speed:joint_1", "control:joint_1"]},
    "drag": {"on": "link_2", "inputs": ["velocity", "up"], "constraints": "dissipative"},
    "drag_torque": {"on": ["link_1", "link_2"], "inputs": ["spin.z", "height"]},
    "actuator_force": {"on": "joint_1", "activation": "elu"},
}
SINKS, SLIDES, HOVERS, FALLS = (
    (0.099, (0.4, 0.2, -0.1)),
    (0.099, (3.0, 2.0, -0.1)),
    (0.1008, (0.4, 0.2, 0)),
    (0.1, (0.4, 0.2, -1)),
)
CONTACTS = {
    "normal_force": {
        "Compliant": (*SINKS, {"scale": 10.0, "activation": "softplus"}),
        "Newton": (*SINKS, {"scale": 10.0}),
    },
    "friction_force": {
        "Compliant": (*SINKS, {"scale": 10.0, "inputs": ["slip", "normal_force"]}),
        "Hard": (*SLIDES, {}),
    },
    "friction_coefficient": {
        "Compliant": (*SLIDES, {"inputs": ["slip", "approach"], "hidden": (4, 4)}),
        "Hard": (*SLIDES, {}),
    },
    "contact_stiffness": {"Compliant": (*SINKS, {"scale": 1e4, "constraints": "non_negative"})},
    "restitution": {"Hard": (*FALLS, {})},
}
"""Quantity -> contact model -> height [m] and velocity [m/s] of the ball where it counts, and options."""
MODELS = {
    "Compliant": cs.Compliant(),
    "Hard": cs.Hard(impacts=1, restitution=0.3, tolerance=1e-12),
    "Newton": cs.Newton(),
}


@pytest.mark.parametrize("quantity", ARMS)
def test_quantities_of_robots(quantity: str) -> None:
    world, u = arm(), torch.tensor([0.2, -0.3], dtype=torch.float64)
    plain = world.step(STATE, u)
    network = world.augment(quantity, hidden=(3,), **ARMS[quantity])
    (name,) = (f"network:{name}" for name in world.networks)
    silent = world.step(STATE, u, params={name: torch.zeros(network.size, dtype=torch.float64)})
    assert torch.allclose(silent, plain, rtol=0, atol=1e-15)  # rounding: the code is another one
    weights = disturb(network)
    assert not torch.allclose(world.step(STATE, u, params={name: weights}), plain, rtol=0, atol=1e-6)
    check_gradients(
        lambda w, x, u: world.step(x, u, params={name: w}), (weights, STATE, u), names=("weights", "state", "control")
    )


@pytest.mark.parametrize(("quantity", "model"), [(q, m) for q, models in CONTACTS.items() for m in models])
def test_quantities_of_contacts(quantity: str, model: str) -> None:
    height, velocity, options = CONTACTS[quantity][model]
    world, state = ball(MODELS[model])
    state[2], state[7:10] = height, torch.tensor(velocity)
    plain = world.step(state)
    network = world.augment(quantity, **{"hidden": (3,), **options})
    name = f"network:{quantity}"
    silent = world.step(state, params={name: torch.zeros(network.size, dtype=torch.float64)})
    assert torch.allclose(silent, plain, rtol=0, atol=1e-14)  # rounding: the code is another one
    weights = disturb(network)
    assert not torch.allclose(world.step(state, params={name: weights}), plain, rtol=0, atol=1e-7)
    check_gradients(
        lambda w, v: world.step(torch.cat([state[:7].to(v.dtype), v]), params={name: w}),
        (weights, state[7:]),
        names=("weights", "velocity"),
        step=1e-4,
    )


def constant(network: Network, value: float) -> torch.Tensor:
    """Return weights with which a network gives a constant: all zero but the last bias."""
    weights = torch.zeros(network.size, dtype=torch.float64)
    weights[-network.outputs :] = value
    return weights


def test_a_constant_dissipative_network_is_damping() -> None:
    u = torch.tensor([0.2, -0.3], dtype=torch.float64)
    damped = arm(parameters=["damping:pendulum2/joint_2"])
    expected = damped.rollout(STATE, u.expand(20, 2), params={"damping:pendulum2/joint_2": 0.09})
    for replace in (False, True):  # the robot has no damping of its own, and after it is replaced none again
        world = arm()
        network = world.augment("joint_torque", on="joint_2", constraints="dissipative", replace=replace, name="rub")
        found = world.rollout(STATE, u.expand(20, 2), params={"network:rub": constant(network, 0.3)})
        assert torch.allclose(found, expected, rtol=0, atol=1e-13)


def test_a_replaced_joint_torque_is_without_damping_friction_and_spring() -> None:
    own = ["damping:pendulum2/joint_2", "friction:pendulum2/joint_2", "stiffness:pendulum2/joint_2"]
    world = arm(parameters=own)
    params: dict[str, torch.Tensor | float] = dict(zip(own, (0.1, 0.2, 3.0), strict=True))
    assert not torch.allclose(world.step(STATE, params=params), world.step(STATE), rtol=0, atol=1e-6)
    without = arm().step(STATE)
    network = world.augment("joint_torque", on="joint_2", replace=True, name="rub")
    params["network:rub"] = torch.zeros(network.size, dtype=torch.float64)
    assert torch.allclose(world.step(STATE, params=params), without, rtol=0, atol=1e-14)


def test_a_constant_drag_is_a_wrench() -> None:
    """-c v at the centre of mass, in any axes."""
    world, plain = arm(), arm()
    network = world.augment("drag", on="link_2", constraints="dissipative", scale=2.0, name="water")
    robot = cs.load_robot("pendulum2")
    q, v = STATE[:2], STATE[2:]
    pose = robot.forward_kinematics(q, "link_2")
    com = pose.rotation @ torch.tensor(robot.model.links[2].inertia.com)
    linear, angular = robot.link_velocity(q, v, "link_2").split(3)
    force = -2.0 * 0.5**2 * (linear + torch.linalg.cross(angular, com))
    wrench = torch.cat([force, torch.linalg.cross(com, force)])
    found = world.step(STATE, params={"network:water": constant(network, 0.5)})
    assert torch.allclose(found, plain.step(STATE, wrenches={"link_2": wrench}), rtol=0, atol=1e-14)
    assert not torch.allclose(found, plain.step(STATE), rtol=0, atol=1e-4)


@pytest.mark.parametrize("actuator", [cs.Torque(), cs.PositionServo()], ids=lambda a: type(a).__name__)
def test_an_actuator_with_a_network_is_clamped_before_it(actuator) -> None:
    """What a network adds acts on the joint, whatever kind of actuator it is; in its place it is all that acts."""
    u = torch.tensor([0.2, -0.3], dtype=torch.float64)
    for replace in (False, True):
        world = arm(actuators=actuator)
        network = world.augment("actuator_force", on="joint_2", name="motor", replace=replace)
        found = world.step(STATE, u, params={"network:motor": constant(network, 0.7)})
        free = arm(actuators={"joint_1": actuator, "joint_2": cs.Torque()} if replace else actuator)
        if replace:
            expected = free.step(STATE, torch.tensor([0.2, 0.7], dtype=torch.float64))
        else:
            robot = cs.load_robot("pendulum2")
            push = torch.linalg.solve(robot.mass_matrix(STATE[:2]), torch.tensor([0.0, 0.7], dtype=torch.float64))
            moved = free.step(STATE, u)[2:] + 0.01 * push
            expected = torch.cat([STATE[:2] + 0.01 * moved, moved])
        assert torch.allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("quantity", "parameter", "model", "place"),
    [
        ("friction_coefficient", "friction", "Hard", SLIDES),
        ("friction_coefficient", "friction", "Compliant", SLIDES),
        ("contact_stiffness", "stiffness", "Compliant", SINKS),
        ("restitution", "restitution", "Hard", FALLS),
    ],
)
def test_a_constant_in_place_of_a_number_of_contacts(quantity: str, parameter: str, model: str, place) -> None:
    values = {"friction": 0.4, "stiffness": 3e3, "restitution": 0.6}
    worlds = []
    for parameters in ([], [parameter]):
        body = cs.Body("ball", [cs.shapes.sphere(0.1)], mass=1.0)
        worlds.append(cs.World(bodies=[body], scenery=[GROUND], contact=MODELS[model], dt=0.002, parameters=parameters))
    state = worlds[0].initial_state(dtype=torch.float64)
    state[2], state[7:10] = place[0], torch.tensor(place[1])
    network = worlds[0].augment(quantity, on="ball", replace=True, scale=values[parameter])
    found = worlds[0].rollout(
        state, steps=5, params={f"network:{next(iter(worlds[0].networks))}": constant(network, 1.0)}
    )
    expected = worlds[1].rollout(state, steps=5, params={parameter: values[parameter]})
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)
    assert not torch.allclose(expected, worlds[1].rollout(state, steps=5), rtol=0, atol=1e-7)


def test_networks_of_a_robot_are_in_its_world_and_train_without_compiling() -> None:
    robot = cs.load_robot("pendulum2").double()
    network = robot.augment("joint_torque", on="joint_1", inputs=["speed", "speed:joint_2"], hidden=(3,))
    world = cs.World([robot], contact=None, integrator="euler", dt=0.01)
    network.set_vector(disturb(network))
    u = torch.zeros(6, 5, 2, dtype=torch.float64)
    start = STATE + 0.1 * torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    states = world.rollout(start, u)
    a = robot.forward_dynamics(start[:, :2], start[:, 2:], u[0])
    assert torch.allclose(states[1, :, 2:], start[:, 2:] + 0.01 * a, rtol=0, atol=1e-13)
    kernels = dict(world._kernels)
    states[-1].square().sum().backward()
    grads = [p.grad.clone() for p in network.parameters() if p.grad is not None]
    assert all(bool((g != 0).any()) for g in grads)
    # The same weights as a parameter of each sample: gradients of the shared ones are their sum.
    each = network.vector().detach().expand(5, -1).clone().requires_grad_()
    world.rollout(start, u, params={"network:pendulum2/joint_torque:joint_1": each})[-1].square().sum().backward()
    flat = torch.cat([x.flatten() for k in range(2) for x in (grads[k], grads[2 + k])])
    assert each.grad is not None and torch.allclose(each.grad.sum(0), flat, rtol=1e-10, atol=1e-14)
    torch.optim.SGD(network.parameters(), lr=0.1).step()
    assert not torch.equal(world.rollout(start, u), states)
    assert world._kernels.keys() == kernels.keys()
    single = world.float().rollout(start.float(), u.float())
    assert single.dtype == torch.float32
    assert torch.allclose(single.double(), world.rollout(start, u), atol=1e-5)
    with pytest.raises(ValueError, match="was augmented with 'drag:link_2' after this world was made"):
        robot.augment("drag", on="link_2")
        world.step(STATE)


def test_a_contact_network_is_shared_by_many_samples_and_threads() -> None:
    world, state = ball(cs.Compliant())
    network = world.double().augment("friction_coefficient", on="ball", inputs=["slip"], hidden=(3,))
    network.set_vector(disturb(network))
    many = state.expand(1000, -1).clone()
    many[:, 2] = 0.099
    many[:, 7] = torch.linspace(0.0, 3.0, 1000)
    found, before = world.step(many), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert torch.equal(world.step(many), found)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(world.step(many[437]), found[437])
