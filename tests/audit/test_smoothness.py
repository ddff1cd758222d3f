"""The smoothness report, on motions whose switches are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import costate as cs
from costate.audit.smoothness import Event, Smoothness
from costate.audit.smoothness.advice import advise
from costate.audit.worlds import audit_world
from costate.model import Inertia, Joint, Link, Model, Transform
from costate.model.surface import Softness
from costate.robot import Robot

D = torch.float64
GROUND = cs.Static("ground", cs.shapes.plane())


def pusher(contact) -> cs.World:
    """A ball on a rail, driven, and another one in its way."""
    at = [Transform(np.eye(3), np.array([x, 0.0, 0.0])) for x in (0.0, 0.25)]
    balls = [
        cs.Body(name, [cs.shapes.sphere(0.1)], 1.0, joint="prismatic", axis=(1, 0, 0), pose=pose)
        for name, pose in zip(("hand", "ball"), at, strict=True)
    ]
    return cs.World([], balls, actuators={"hand": cs.Torque(limit=10.0)}, contact=contact, gravity=(0, 0, 0), dt=0.01)


@pytest.fixture(scope="module")
def hard() -> cs.World:
    return pusher(cs.Hard())


def run(world: cs.World, force: float, steps: int = 40) -> Smoothness:
    u = torch.full((steps, 1), force, dtype=D)
    return cs.diagnose(world, world.rollout(world.initial_state(), u), u)


def test_a_touch_is_found_at_its_step(hard: cs.World) -> None:
    """5 N on 1 kg bridge 5 cm in 0.14 s."""
    found = run(hard, 5.0)
    (touch,) = [e for e in found.events if e.kind == "touches"]
    assert 12 <= touch.step <= 16
    assert not found.zeros


def test_zero_before_touching_is_named_with_what_to_choose(hard: cs.World) -> None:
    (line,) = run(hard, 5.0, steps=8).zeros
    assert "no control moves ball" in line and "Compliant" in line
    assert not run(pusher(cs.Compliant(smoothing=0.05)), 5.0, steps=8).zeros


def test_saturated_actuator_is_named(hard: cs.World) -> None:
    found = run(hard, 50.0, steps=8)
    assert "saturated" in {e.kind for e in found.events}
    assert any("effort limit" in line for line in found.zeros)


def test_sensitivities_are_those_of_the_rollout(hard: cs.World) -> None:
    """Against the Jacobian of the rollout by reverse mode."""
    u = torch.full((6, 1), 5.0, dtype=D)
    x = hard.initial_state()
    found = cs.diagnose(hard, hard.rollout(x, u), u)
    J = torch.func.jacrev(lambda s: hard.rollout(s, u)[-1])(x)
    assert torch.allclose(found.sensitivity[0], torch.linalg.matrix_norm(J, 2), rtol=1e-10)
    assert "step" in str(found)
    assert "<svg" in found.page().html()


def test_zero_gradients_of_a_step_are_named_with_what_to_choose(hard: cs.World) -> None:
    """Shapes apart under hard contact, and a control beyond its limit; `costate gradcheck` says both."""
    audit = audit_world(hard, control=torch.tensor([50.0]), steps=2, search=2)
    zeros = audit.rows["step, at the start"].zeros
    assert any("contact was not checked" in note for note in audit.notes)
    assert audit.ok and "Compliant" in zeros["friction"] and "effort limit" in zeros["control"]


def settled_ball(contact, dt: float = 0.01, steps: int = 5) -> Smoothness:
    """A ball of 1 kg that rests on the ground, 1 mm deep; it touches in every step."""
    world = cs.World(bodies=[cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)], scenery=[GROUND], contact=contact, dt=dt)
    state = world.initial_state()
    state[2] = 0.1 - 1e-3
    return cs.diagnose(world, world.rollout(state, torch.zeros(steps, 0, dtype=D)))


def kinds(found: Smoothness) -> set[str]:
    return {cause.kind for cause in found.causes}


def test_steep_friction_is_named_with_the_factor_of_a_step() -> None:
    """A ball that sticks: mu f_n / s times 3.5 / m (it may roll) times dt, of which a step's linearisation has an eigenvalue."""
    contact = cs.Compliant(stiffness=9810.0, damping=0.0, friction=0.5, friction_speed=0.05, smoothing=1e-6)
    found = settled_ball(contact, dt=0.01, steps=1)
    (cause,) = [c for c in found.causes if c.kind == "friction slope"]
    number = 0.5 * 9.81 / 0.05 * 3.5 * 0.01  # the ground carries the weight at a depth of 1 mm
    assert number > 2 and f"by {1 - number:.3g} " in cause.what
    assert "friction slope" not in kinds(settled_ball(contact, dt=0.005, steps=1))


@pytest.mark.parametrize(("dt", "kind"), [(0.0005, None), (0.002, "less than six steps"), (0.004, "unstable")])
def test_stiff_contact_is_named_at_long_steps(dt: float, kind: str | None) -> None:
    """k dt^2 / m is 0.125, 2 and 8; the bound of stability is 4."""
    contact = cs.Compliant(stiffness=5e5, damping=0.0, friction=0.0)
    found = [c for c in settled_ball(contact, dt=dt).causes if c.kind == "stiff contact"]
    assert len(found) == (kind is not None) and all((kind or "") in c.what for c in found)


@pytest.mark.parametrize(("ratio", "named"), [(1.0, False), (0.1, True)])
def test_landings_that_a_step_does_not_resolve_are_named(ratio: float, named: bool) -> None:
    """A ball dropped on MuJoCo's contact: with solref (0.02, ratio) it swings by 0.1 rad in a step of 2 ms, or by 1.05."""
    contact = cs.Newton(softness=Softness(solref=(0.02, ratio)))
    world = cs.World([], [cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)], [GROUND], contact=contact, dt=0.002)
    state = world.initial_state()
    state[2], state[9] = 0.102, -1.0
    found = [c for c in cs.diagnose(world, world.rollout(state, steps=6)).causes if c.kind == "unresolved landing"]
    assert len(found) == named and all("swings by 1.1 rad" in c.what for c in found)


def test_growth_in_a_step_and_advice_agree() -> None:
    """A stiff contact multiplies in a step, and does not explode: this is said, and not that nothing stands out."""
    found = settled_ball(cs.Compliant(stiffness=1e5, friction=0.0), dt=0.001)
    assert float(found.growth.max()) > 50
    loud = settled_ball(cs.Compliant(stiffness=1e6, friction=0.0), dt=0.001)
    assert float(loud.growth.max()) > 100 and "Nothing stands out" not in str(loud)
    assert any(f"multiplies some disturbance by {float(loud.growth.max()):.2g}" in line for line in loud.advice)


def test_unfinished_sweeps_are_named() -> None:
    """A heavy ball on a light one, on rails: the sweeps contract by 0.99 each."""
    at = [Transform(np.eye(3), np.array([0.0, 0.0, z])) for z in (0.1, 0.3)]
    balls = [
        cs.Body(f"ball{k}", [cs.shapes.sphere(0.1)], mass, joint="prismatic", pose=pose)
        for k, (mass, pose) in enumerate(zip((1.0, 100.0), at, strict=True))
    ]
    worlds = [cs.World([], balls, [GROUND], contact=cs.PGS(sweeps=n, friction=0.0), dt=0.01) for n in (10, 3000)]
    few, many = (cs.diagnose(w, w.rollout(w.initial_state(), torch.zeros(4, 0, dtype=D))) for w in worlds)
    assert "unconverged" in kinds(few) and "unconverged" not in kinds(many)
    assert few.residual.shape == (4,) and few.residual.max() > 1e-2 > 1e3 * many.residual.max()
    assert f"largest residual of contact in a step {float(few.residual.max()):.2g}" in str(few)


def thrown(
    velocity: tuple[float, float, float], height: float, contact, steps: int, gravity: float = 0.0
) -> Smoothness:
    world = cs.World(
        bodies=[cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)],
        scenery=[GROUND],
        contact=contact,
        dt=0.01,
        gravity=(0, 0, -gravity),
    )
    state = world.initial_state()
    state[2], state[7:10] = height, torch.tensor(velocity)
    return cs.diagnose(world, world.rollout(state, torch.zeros(steps, 0, dtype=D)))


def test_a_grazing_impact_is_named() -> None:
    bouncy = cs.Hard(friction=0.0, restitution=0.5)
    assert "grazing impact" in kinds(thrown((4.0, 0.0, -0.1), 0.11, bouncy, 30))
    assert "grazing impact" not in kinds(thrown((1.0, 0.0, -1.0), 0.2, bouncy, 30))


def test_bouncing_ever_faster_is_named() -> None:
    bouncy = cs.Hard(friction=0.0, restitution=0.6)
    assert "bouncing" in kinds(thrown((0.0, 0.0, 0.0), 0.5, bouncy, 130, gravity=9.81))
    assert "bouncing" not in kinds(thrown((0.0, 0.0, 0.0), 0.5, bouncy, 60, gravity=9.81))


@dataclass(frozen=True)
class FewImpacts(cs.Hard):
    """Hard contact that finds two impacts in a substep at their time."""

    impacts: int = 2


def test_more_impacts_than_are_solved_are_named() -> None:
    """Three balls strike the ground in one step, or one after the other."""
    at = [Transform(np.eye(3), np.array([x, 0.0, 0.2])) for x in (0.0, 0.5, 1.0)]
    balls = [cs.Body(f"ball{k}", [cs.shapes.sphere(0.1)], 1.0, joint="prismatic", pose=p) for k, p in enumerate(at)]
    world = cs.World([], balls, [GROUND], contact=FewImpacts(restitution=0.5), gravity=(0, 0, 0), dt=0.01)
    for heights, named in (((0.0, 0.001, 0.002), True), ((0.0, 0.05, 0.1), False)):
        state = torch.tensor([*heights, -1.0, -1.0, -1.0], dtype=D)
        found = cs.diagnose(world, world.rollout(state, torch.zeros(30, 0, dtype=D)))
        assert ("many impacts" in kinds(found)) == named


def test_an_actuator_that_is_saturated_for_a_while_is_named(hard: cs.World) -> None:
    u = torch.tensor([[50.0]] * 4 + [[1.0]] * 4, dtype=D)
    found = cs.diagnose(hard, hard.rollout(hard.initial_state(), u), u)
    (cause,) = [c for c in found.causes if c.kind == "saturation"]
    assert "4 of 8 steps" in cause.what and "hand" in cause.what


def test_servos_at_their_limit_are_named() -> None:
    """Two servos that hold each other: the step of the first one knows the second without its limit."""
    world = cs.World(
        [cs.load_robot("two_link")],
        contact=None,
        actuators=cs.PositionServo(1e3, 10.0, limit=5.0),
        dt=0.01,
        gravity=(0, 0, 0),
    )
    u = torch.tensor([[3.0, 0.0]] * 5 + [[0.0, 0.0]] * 5, dtype=D)
    start = torch.zeros(4, dtype=D)
    found = cs.diagnose(world, world.rollout(start, u), u)
    (first, *_) = [c for c in found.causes if c.kind == "saturation"]
    assert "two_link/" in first.what and "of 10 steps" in first.what
    still = cs.diagnose(world, world.rollout(start, 0 * u), 0 * u)
    assert not still.causes and "Nothing stands out" in still.advice[0]


def test_an_actuator_without_a_limit_does_not_saturate() -> None:
    """A ball that is pressed against a wall does not follow its control, but no limit is the reason."""
    ball = cs.Body("hand", [cs.shapes.sphere(0.1)], 1.0, joint="prismatic", axis=(1, 0, 0))
    wall = cs.Static("wall", cs.shapes.plane((0.1, 0, 0), (0, -np.pi / 2, 0)))
    world = cs.World([], [ball], [wall], actuators={"hand": cs.Torque()}, contact=cs.Hard(), gravity=(0, 0, 0))
    u = torch.full((5, 1), 3.0, dtype=D)
    found = cs.diagnose(world, world.rollout(world.initial_state(), u), u)
    assert not found.causes and not [e for e in found.events if e.kind in ("saturated", "limit")]
    assert not any("effort limit" in line for line in found.zeros)


def double_pendulum() -> cs.World:
    links, joints = [Link("base")], []
    for k in range(2):
        links.append(Link(f"link{k}", Inertia(1.0, np.array([0, 0, -0.25]), np.eye(3) / 48)))
        at = Transform(np.eye(3), np.array([0.0, 0.0, -0.5 * k]))
        joints.append(Joint(f"joint{k}", "revolute", links[-2].name, links[-1].name, at, np.array([0.0, 1.0, 0.0])))
    robot = Robot(Model("pendulum", tuple(links), tuple(joints)))
    return cs.World([robot], contact=None, integrator="rk4", dt=0.004, actuators={})


def test_chaos_is_named() -> None:
    """A double pendulum that tumbles: nearby motions part all along, and the stretches multiply to the whole."""
    world = double_pendulum()
    state = torch.tensor([2.5, 1.0, 0.0, 0.0], dtype=D)
    found = cs.diagnose(world, world.rollout(state, torch.zeros(3000, 0, dtype=D)))
    assert float(found.sensitivity.max()) > 1e6
    assert any("No single step is to blame" in line for line in found.advice)
    assert float(found.stretch.log().sum().exp()) == pytest.approx(float(found.sensitivity.max()), rel=1e-6)


def test_a_motion_that_starts_to_part_is_said_to_grow() -> None:
    """Between the bounds of what is useful and what explodes; the horizon that is named keeps to the useful."""
    world = double_pendulum()
    states = world.rollout(torch.tensor([2.5, 1.0, 0.0, 0.0], dtype=D), torch.zeros(3000, 0, dtype=D))
    found = cs.diagnose(world, states[:1001])
    assert 1e3 < float(found.sensitivity.max()) < 1e6 < float(cs.diagnose(world, states).sensitivity.max())
    assert "The gradient grows" in found.advice[0] and "Nothing stands out" not in str(found)


def test_single_steps_that_make_the_growth_are_named() -> None:
    """Two of 40 steps multiply by 1e4 each, one of them where a ball touches."""
    stretch = torch.ones(40, dtype=D)
    stretch[[10, 30]] = 1e4
    sensitivity = torch.cat([stretch.flip(0).cumprod(0).flip(0), torch.ones(1, dtype=D)])
    events = [Event(10, "touches", "ball touches wall")]
    found = Smoothness(events, sensitivity, stretch, stretch, torch.zeros(0), [], [], torch.zeros(0), [])
    (line,) = advise(found, 0.01)
    assert "10 (times 1e+04: ball touches wall), 30 (times 1e+04: no switch there)" in line


def linear(
    stiffness: float, damping: float, steps: int, dt: float = 0.05, start: float = 1e-9
) -> tuple[Smoothness, np.ndarray]:
    """A unit mass on a spring, and its step as matrix: v' = v - dt (k q + d v), q' = q + dt v'."""
    joint = Joint("slide", "prismatic", "base", "mass", damping=damping, stiffness=stiffness)
    links = Link("base"), Link("mass", Inertia(1.0, np.zeros(3), np.eye(3)))
    world = cs.World([Robot(Model("spring", links, (joint,)))], contact=None, gravity=(0, 0, 0), dt=dt)
    row = np.array([-dt * stiffness, 1 - dt * damping])
    states = world.rollout(torch.tensor([start, 0.0], dtype=D), torch.zeros(steps, 1, dtype=D))
    return cs.diagnose(world, states), np.array([[1.0, 0.0] + dt * row, row])


def test_an_unstable_system_explodes_at_the_rate_of_its_eigenvalue() -> None:
    found, A = linear(stiffness=-25.0, damping=0.0, steps=80)
    np.testing.assert_allclose(found.sensitivity[0], np.linalg.norm(np.linalg.matrix_power(A, 80), 2), rtol=1e-10)
    eigenvalue = max(np.abs(np.linalg.eigvals(A)))
    assert found.rate(0) == pytest.approx(eigenvalue, rel=0.03)
    (line,) = found.advice
    assert "explodes" in line and f"at most {int(np.log(1e3) / np.log(found.rate(0)))} steps" in line


def test_a_damped_system_vanishes_at_the_rate_of_its_eigenvalue() -> None:
    found, A = linear(stiffness=16.0, damping=8.0, steps=120)
    np.testing.assert_allclose(found.sensitivity[0], np.linalg.norm(np.linalg.matrix_power(A, 120), 2), rtol=1e-8)
    assert found.rate(0) == pytest.approx(max(np.abs(np.linalg.eigvals(A))), rel=0.05)
    (line,) = found.advice
    assert "vanishes" in line and "put a loss" in line


def test_products_that_overflow_are_reported_as_large() -> None:
    """An eigenvalue of 1.28 per step: 1e430 after 4,000 steps."""
    found, A = linear(stiffness=-25.0, damping=0.0, steps=4000, start=0.0)
    assert 4000 * np.log10(max(np.abs(np.linalg.eigvals(A)))) > 300
    assert float(found.sensitivity[0]) == pytest.approx(1e300) and "explodes" in found.advice[0]
    exact = np.linalg.norm(np.linalg.matrix_power(A, 80), 2)
    assert float(found.sensitivity[-81]) == pytest.approx(exact, rel=1e-10)


def test_a_motion_that_is_not_finite_is_refused_with_its_step(hard: cs.World) -> None:
    states = hard.rollout(hard.initial_state(), torch.zeros(5, 1, dtype=D))
    states[3, 0] = torch.nan
    with pytest.raises(ValueError, match=r"state 3 is not finite.*states\[:3\]"):
        cs.diagnose(hard, states)


def servoed(stiffness: float) -> tuple[cs.World, Smoothness, np.ndarray]:
    """A block of 1 kg on rails along x and z, pressed on the ground by its weight; a servo holds it along x."""
    links = (
        Link("base"),
        Link("cart", Inertia(1e-3, np.zeros(3), 1e-6 * np.eye(3))),
        Link("block", Inertia(1.0, np.zeros(3), 1e-2 * np.eye(3)), collisions=(cs.shapes.sphere(0.1),)),
    )
    joints = (
        Joint("x", "prismatic", "base", "cart", axis=np.array([1.0, 0, 0])),
        Joint("z", "prismatic", "cart", "block", axis=np.array([0, 0, 1.0])),
    )
    contact = cs.Compliant(stiffness=9810.0, damping=0.0, friction=0.5, friction_speed=0.02, smoothing=1e-6)
    servo = {"slider/x": cs.PositionServo(stiffness, 0.0)}
    world = cs.World(
        [Robot(Model("slider", links, joints))], scenery=[GROUND], contact=contact, actuators=servo, dt=0.01
    )
    state = torch.tensor([0.0, 0.1 - 1e-3, 0.0, 0.0], dtype=D)
    u = torch.zeros(1, 1, dtype=D)
    A = world.linearize(state, u[0])[0].numpy()
    return world, cs.diagnose(world, world.rollout(state, u), u), A


@pytest.mark.parametrize("stiffness", [100.0, 40000.0])
def test_servos_hold_what_friction_acts_on(stiffness: float) -> None:
    """Friction of slope s on a mass m with a servo of stiffness k multiplies a speed by (m - s dt) / (m + k dt^2), which the
    linearisation of the step shows; it is too steep for a loose servo, and not for a stiff one."""
    _, found, A = servoed(stiffness)
    slope = 0.5 * 9.81 / 0.02
    factor = (1.001 - slope * 0.01) / (1.001 + stiffness * 0.01**2)
    assert A[2, 2] == pytest.approx(factor, rel=1e-3)
    named = [c for c in found.causes if c.kind == "friction slope"]
    assert len(named) == (stiffness == 100.0)
    if named:
        alone = 1 - slope * 0.01 / (1.001 + stiffness * 0.01**2)  # without the damping of the servo itself
        assert f"by {alone:.3g} " in named[0].what and named[0].unstable == (0,)


def test_steps_too_long_for_the_contact_are_blamed_before_chaos() -> None:
    contact = cs.Compliant(stiffness=9810.0, damping=0.0, friction=0.5, friction_speed=0.002, smoothing=1e-6)
    found = settled_ball(contact, dt=0.01, steps=5)
    assert float(found.sensitivity.max()) > 1e6
    assert "too long for the contact (friction slope)" in found.advice[0] and "chaotic" not in str(found)


@pytest.mark.study
def test_a_soft_landing_is_named_and_does_not_last() -> None:
    """A Laikago that settles on its feet: these leave the ground by a tenth of a micrometre and land again."""
    world = cs.World(
        [cs.load_robot("laikago")],
        scenery=[GROUND],
        contact=cs.Hard(),
        actuators=cs.PositionServo(300.0, 10.0),
        dt=0.002,
        collide=lambda a, b: "toe" in a or "toe" in b,
    )
    start = world.initial_state()
    u = start[7:19].expand(500, 12)
    states = world.rollout(start, u)
    found = cs.diagnose(world, states, u)
    (cause,) = [c for c in found.causes if c.kind == "soft landing"]
    assert float(found.growth[cause.step]) > 1e3 > float(found.sensitivity.max())
    assert 1e-7 < float(world.gaps(states[cause.step]).max()) < 1e-6
    assert "(soft landing)" in found.advice[0] and "does not last" in found.advice[0]
