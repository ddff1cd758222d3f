"""Hands that propose contacts: residuals against closed forms, products against differences, executor and judge."""

from dataclasses import replace
from math import pi

import casadi as ca
import numpy as np
import pytest
import torch

from costate.robot import Robot
from costate.tasks.manipulation.execute import Executor, _squeezed, between
from costate.tasks.manipulation.kinds import Grasp, Turn
from costate.tasks.manipulation.objects import Cube, Cylinder
from costate.tasks.manipulation.options import ManipulationOptions, honest, honest_hinge, varied
from costate.tasks.manipulation.proposals import first_guess
from costate.tasks.manipulation.step import NUMBERS
from costate.tasks.manipulation.unroll import unroll
from costate.train.episode import Trajectory

SHORT = ManipulationOptions(steps=4)
DOUBLE = torch.float64


@pytest.fixture(scope="module")
def task() -> Grasp:
    return Grasp(SHORT)


@pytest.fixture(scope="module")
def drawn(task):
    """Return three episodes, and a policy that is far from doing nothing."""
    episodes = task.draw(3, torch.Generator().manual_seed(1), DOUBLE)
    policy = task.policy(replace(task.training, hidden=6), torch.Generator().manual_seed(2))
    with torch.no_grad():
        for w in policy.parameters():
            w += 0.05 * torch.randn(w.shape, generator=torch.Generator().manual_seed(w.numel()), dtype=DOUBLE)
    return episodes, policy


def one_step(task, action, thing=(1.0, 0.01, 2.0), change=lambda x: x):
    """Return the state before, the state after, and the blocks of residuals of one step."""
    state = change(task.start(task.draw(1, torch.Generator().manual_seed(3), DOUBLE)))
    out = task.step.kernel(state=state, action=action[None], object=torch.tensor([thing], dtype=DOUBLE))
    return state[0], out.after[0], {name: out.residual[0, rows] for name, rows in task.step.blocks.items()}


def proposal(task, k, on=(0.3, 0.0, 0.0), under=(0.0, -0.07, 0.1), force=(0.0, 0.0, 0.0)):
    """Return an action in which nothing moves and one end-effector has a proposal."""
    action = first_guess(task.step, np.array(task.middle), 0.0)
    start = len(task.step.hand.driven) + NUMBERS * k
    action[start : start + NUMBERS] = torch.tensor([*on, *under, *force], dtype=DOUBLE)
    return action


# --- products ------------------------------------------------------------------------------------------------------


def flat(weights):
    return torch.cat([w.flatten() for w in weights])


def test_products_with_the_jacobian_agree_with_differences_and_each_other(task, drawn):
    """J v is a central difference of the residuals, and <u, J v> = <J^T u, v>."""
    episodes, policy = drawn
    weights = list(policy.parameters())
    start, thing = task.start(episodes), task.believed(episodes)
    generator = torch.Generator().manual_seed(4)
    v = [torch.randn(w.shape, generator=generator, dtype=DOUBLE) for w in weights]
    rows, states = unroll(task.step, policy, start, thing)
    u = [torch.randn(x.shape, generator=generator, dtype=DOUBLE).requires_grad_() for x in (rows, states)]
    back = torch.autograd.grad([rows, states], weights, u, create_graph=True)
    along = torch.autograd.grad(back, u, v)
    errors = []
    for h in (1e-4, 1e-5, 1e-6):
        ends = []
        for sign in (1, -1):
            with torch.no_grad():
                for w, d in zip(weights, v, strict=True):
                    w += sign * h * d
                ends.append([x.clone() for x in unroll(task.step, policy, start, thing)])
                for w, d in zip(weights, v, strict=True):
                    w -= sign * h * d
        slopes = [(a - b) / (2 * h) for a, b in zip(*ends, strict=True)]
        errors.append(max(float((a - b).norm() / b.norm()) for a, b in zip(slopes, along, strict=True)))
    assert min(errors) < 1e-7, errors
    left = sum(float((a.detach() * b).sum()) for a, b in zip(u, along, strict=True))
    assert left == pytest.approx(float(flat(back).detach() @ flat(v)), rel=1e-11)


def test_unrolled_is_the_same_as_autograd_through_policy_and_step(task, drawn):
    """The gradient is that of plain autograd, step by step through the kernels."""
    episodes, policy = drawn
    state, thing = task.start(episodes), task.believed(episodes)
    rows, states = unroll(task.step, policy, state, thing)
    total, seen = 0.0, task.step.observe(state=state, object=thing).seen
    for t in range(task.steps):
        out = task.step.kernel(state=state, action=policy(seen), object=thing)
        total, state, seen = total + out.residual.square().sum(), out.after, out.seen
        torch.testing.assert_close(rows[t], out.residual, rtol=1e-12, atol=1e-12)
    ours = torch.autograd.grad(rows.square().sum() + states[-1].square().sum(), list(policy.parameters()))
    theirs = torch.autograd.grad(total + state.square().sum(), list(policy.parameters()))
    torch.testing.assert_close(flat(ours), flat(theirs), rtol=1e-9, atol=1e-9)


# --- closed forms --------------------------------------------------------------------------------------------------


def test_an_object_without_forces_falls(task):
    n, g, dt = task.step.nq, 9.81, task.options.dt
    before, after, blocks = one_step(task, proposal(task, 0))
    assert float(after[n + 2] - before[n + 2]) == pytest.approx(-g * dt**2, abs=1e-12)
    assert float(after[n + 9]) == pytest.approx(-g * dt, abs=1e-12)
    assert float(blocks["distance"].abs().max()) == 0


def test_a_force_moves_the_object_and_costs_its_distance(task):
    """A force of 0.2 N off the centre turns the cube as its inertia says; it costs gap times force."""
    n, dt, m = task.step.nq, task.options.dt, 0.01
    on, force = np.array([0.3, 0.1, 0.0]), np.array([-2.0, 0.0, 0.0])
    before, after, blocks = one_step(task, proposal(task, 1, on, force=force))
    R = rotation(before[n + 3 : n + 7].numpy())
    on_surface = np.array([0.03, 0.01, 0.0])
    np.testing.assert_allclose(after[n + 7 : n + 9], dt / m * (R @ (0.1 * force))[:2], atol=1e-9)
    inertia = m * 0.06**2 / 6
    np.testing.assert_allclose(float(after[n + 12]), dt * np.cross(on_surface, 0.1 * force)[2] / inertia, rtol=1e-6)
    tip = task.step.hand.tips[1]
    pose = Robot(task.step.hand.model).double().forward_kinematics(before[:n], tip.link)
    under = np.array([0.0, -tip.radius, 0.01])
    finger = task.step.hand.base.translation + pose.position.numpy() + pose.rotation.numpy() @ under
    gap = before[n : n + 3].numpy() + R @ on_surface - finger
    expected = np.outer(gap, force * 0.1).T.ravel() / (0.01 * 0.1)
    np.testing.assert_allclose(blocks["distance"][9:18], expected, atol=2e-3)


@pytest.mark.parametrize(("angle", "inside"), [(0.9, True), (1.1, False)])
def test_friction_cone(task, angle, inside):
    """A force within the cone costs nothing, but for what is smoothed; outside it costs what is too much."""
    mu, size = 0.5, 10.0
    slope = angle * mu
    force = size * np.array([-1.0, 0.0, slope])
    cone = one_step(task, proposal(task, 0, force=force), (1.0, 0.01, mu))[2]["cone"][0]
    assert float(cone) == pytest.approx(0.0 if inside else size * (slope - mu), abs=2e-3)


def test_the_same_proposals_move_objects_of_other_sizes_alike(task):
    """Forces are in a unit that grows with the volume, as the mass does."""
    action, n = proposal(task, 1, force=(-2.0, 0.5, 0.3)), task.step.nq
    found = [one_step(task, action, (scale, 0.01 * scale**3, 0.5))[1:] for scale in (1.0, 0.8)]
    torch.testing.assert_close(found[0][0][n + 7 : n + 10], found[1][0][n + 7 : n + 10], rtol=1e-9, atol=1e-12)
    for name in ("cone", "forces"):
        torch.testing.assert_close(found[0][1][name], found[1][1][name], rtol=1e-5, atol=1e-9)


def test_calm_proposals_neither_pull_nor_throw_nor_jerk():
    """A pull costs its force, an object that falls in the end its acceleration, and an arm that sets off at once its own."""
    task = Grasp(replace(SHORT, calm=True))
    cone = one_step(task, proposal(task, 0, force=(3.0, 0.0, 0.0)), (1.0, 0.01, 0.5))[2]["cone"]
    assert float(cone[1]) == pytest.approx(3.0, abs=2e-3) and float(cone[0]) > 0
    episodes, policy = task.draw(2, torch.Generator().manual_seed(1), DOUBLE), task.policy(task.training)
    with torch.no_grad():
        policy.out.weight.zero_()
        policy.out.bias.copy_(proposal(task, 0))
        policy.out.bias[-3:] = 0.0
        policy.out.bias[0] = 0.5
    blocks = task.residuals(policy, episodes)
    assert float(blocks["falling"].square().sum().detach()) == pytest.approx(9.81**2, rel=1e-9)
    rate = task.step.physics.arm_speed * np.tanh(0.5)
    expected = (rate / task.options.dt / 10) ** 2 / task.steps
    assert float(blocks["arm"].square().sum().detach()) == pytest.approx(expected, rel=1e-9)
    assert set(task.weights) == set(blocks) >= {"arm", "falling"}


def test_slip_is_the_velocity_between_the_points(task):
    """Of a finger that moves past an object at rest: the difference of two positions of its point."""
    action = proposal(task, 0, force=(0.0, 0.0, 0.0))
    action[len(task.step.hand.driven) + 6] = -3.0
    driven = task.step.hand.driven.index("FFJ2")
    action[driven] = 0.2
    action[-1] = 0.0
    weightless = (1.0, 1e6, 2.0)  # so heavy that nothing moves it in a step
    before, after, blocks = one_step(task, action, weightless)
    n, tip, hand = task.step.nq, task.step.hand.tips[0], Robot(task.step.hand.model).double()
    point = torch.tensor([0.0, -tip.radius, 0.01], dtype=DOUBLE)
    h, rates = 1e-6, (after[:n] - before[:n]) / task.options.dt
    poses = [hand.forward_kinematics(before[:n] + k * h * rates, tip.link) for k in (-1, 1)]
    moved = [p.position + p.rotation @ point for p in poses]
    fall = torch.tensor([0.0, 0.0, -9.81 * task.options.dt])
    expected = (fall - (moved[1] - moved[0]) / (2 * h)) * 3.0 / 0.1
    assert float((blocks["slip"][:3] - expected).abs().max()) < 1e-4 * float(expected.abs().max())


def test_slip_with_components_of_the_force_costs_the_same_and_is_smooth():
    """Twelve rows per contact have the squares of the velocity times the force's size. Along a line through a force of zero, the
    latter bend: the linear model from before it is wrong behind it by twice the velocity times what is left of the force."""
    smooth, bent = (Grasp(replace(SHORT, smooth=each)) for each in (True, False))
    first = len(smooth.step.hand.driven)

    def rows(task, x):
        action = proposal(task, 0, force=(x, 0.5 * x, -x))
        action[:first] = 0.3
        return one_step(task, action, (1.0, 1e6, 2.0))[2]["slip"]

    slips = [[rows(task, x) for x in (-0.2, -0.1, 0.2)] for task in (smooth, bent)]
    for one, other in zip(*slips, strict=True):
        torch.testing.assert_close(one.square().sum(), other.square().sum(), rtol=1e-9, atol=0)
        assert len(one) == 4 * len(other)
    wrong = [float((before + 4 * (after - before) - ahead)[: 12 if k == 0 else 3].norm() / ahead[: 12 if k == 0 else 3].norm())
             for k, (before, after, ahead) in enumerate(slips)]  # fmt: skip
    assert wrong[0] < 1e-3 and wrong[1] == pytest.approx(2.0, abs=0.05)
    assert Turn.options.smooth and not honest_hinge(Turn.options).smooth and not Grasp.options.smooth


def test_limits_and_overlap(task):
    n = task.step.nq

    def beyond(x):
        x = x.clone()
        x[:, task.step.hand.joints.index("FFJ3")] = 0.349 + 0.1
        x[:, n + 2] = 0.02
        return x

    blocks = one_step(task, proposal(task, 0), change=beyond)[2]
    assert float(blocks["limits"].max()) == pytest.approx(0.1, abs=1e-9)
    assert float(blocks["overlap"][-8:].max()) == pytest.approx((0.01 + 9.81e-4) / 0.01, abs=1e-6)


def clearance(task, poses, scale):
    """Return the least distance between eleven points along each link at home and objects at poses (N, 7) [m]."""
    robot, base, p = Robot(task.step.hand.model).double(), task.step.hand.base, ca.SX.sym("p", 3)
    distance = ca.Function("d", [p], [task.step.thing.distance(p, ca.SX(scale))])
    least = []
    for capsule in (*task.step.hand.tips, *task.step.hand.others):
        at = robot.forward_kinematics(torch.tensor(task.step.hand.home), capsule.link)
        for part in np.linspace(0, 1, 11):
            world = base.translation + base.rotation @ (at.position + at.rotation[:, 2] * part * capsule.length).numpy()
            seen = np.array([rotation(x[3:]).T @ (world - x[:3]) for x in poses])
            least.append(np.array(distance(seen.T)).min() - capsule.radius)
    return min(least)


@pytest.mark.parametrize("kind", [Grasp, Turn])
def test_no_link_begins_within_an_object(kind):
    """Places within a link are drawn anew: without that, a fifth of those of the cube would be."""
    task = kind(replace(kind.options, steps=4))
    episodes = task.draw(200, torch.Generator().manual_seed(1), DOUBLE)
    assert clearance(task, task.placed(episodes.state, episodes).numpy(), 1.0) > 0


def test_the_largest_cylinders_can_be_drawn():
    """At their usual place they are within 1 mm of the hand, and new angles do not help; where they are drawn, they are not."""
    task = Turn(replace(varied(Turn.options), steps=4, scales=(1.2, 1.2)))
    usual = torch.tensor([[*task.middle, 0.0, 0.0, 0.0, 1.0]], dtype=DOUBLE)
    episodes = task.draw(50, torch.Generator().manual_seed(1), DOUBLE)
    places = torch.cat([usual, task.placed(episodes.state, episodes)])
    depth = task.step.overlap(pose=places, scale=torch.full((51, 1), 1.2, dtype=DOUBLE)).depth[:, 0]
    assert depth[0] > -1e-3 and bool((depth[1:] <= -1e-3).all())


@pytest.mark.parametrize("kind", [Grasp, Turn])
def test_hands_are_clear_of_the_largest_object(kind):
    """Of any yaw, at the corners of its range."""
    task = kind(varied(kind.options))
    reach, height = (0.0, task.middle[2]) if task.hinge else (task.options.place, 1.2 * 0.03)
    places = [(x, y, height, 0, 0, np.sin(a), np.cos(a)) for x in (-reach, reach) for y in (-reach, reach)
              for a in np.linspace(-pi / 8, pi / 8, 9)]  # fmt: skip
    assert clearance(task, places, 1.2) > 0
    np.testing.assert_array_equal(kind(replace(kind.options, wide=True)).hand().home, task.step.hand.home)


def test_drag_is_the_sliding_of_links_near_the_object():
    """Of a turning cylinder beside moving fingers: the difference of two positions of two points, without its normal part."""
    reach, rate, dt = 1.0, 3.0, 1e-6
    task = Turn(replace(honest_hinge(Turn.options), steps=4, drag=reach))
    step, n, robot = task.step, task.step.nq, Robot(task.step.hand.model).double()
    action = first_guess(step, np.array(task.middle), 0.0)
    action[step.hand.driven.index("FFJ2")] = 0.3
    action[step.hand.driven.index("THJ4")] = -0.2

    def turning(x):
        x = x.clone()
        x[:, n + 12] = rate
        return x

    before, after, blocks = one_step(task, action, (1.0, 1e6, 0.8), turning)
    rates = (after[:n] - before[:n]) / task.options.dt
    middles = [c for c in step.hand.others if c.link.endswith("middle")]
    points = [(c, part) for c in (*step.hand.tips, *middles) for part in (0.0, 0.5, 1.0)]
    base, checked = step.hand.base, 0
    for (capsule, part), found in zip(points, blocks["drag"].view(-1, 3), strict=True):
        poses = [robot.forward_kinematics(before[:n] + k * dt * rates, capsule.link) for k in (0, 1)]
        axis = torch.tensor([0.0, 0.0, part * capsule.length], dtype=DOUBLE)
        at = base.translation + base.rotation @ (poses[0].position + poses[0].rotation @ axis).numpy()
        at = at - before[n : n + 3].numpy()
        if abs(at[2]) > 0.02:
            continue  # near an edge of the cylinder, where normals are blended
        normal = np.array([at[0], at[1], 0.0]) / np.hypot(at[0], at[1])
        own = torch.tensor(base.rotation.T @ (-capsule.radius * normal))
        under = axis + poses[0].rotation.T @ own
        moved = [base.rotation @ (p.position + p.rotation @ under).numpy() for p in poses]
        sliding = np.cross([0, 0, rate], 0.04 * normal) - (moved[1] - moved[0]) / dt
        gap = np.hypot(at[0], at[1]) - 0.04 - capsule.radius
        expected = min(1 - gap / reach, 1) * (sliding - normal * (normal @ sliding)) / 0.1
        np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())
        checked += 1
    assert checked > 2


def test_the_angle_of_a_cylinder_makes_no_difference():
    """Proposals on a hinge stand still while the cylinder turns: neither what is seen nor a residual depends on its angle."""
    task, found = Turn(replace(Turn.options, steps=4)), []
    action = proposal(task, 0, (0.3, 0.1, 0.0), force=(-2.0, 1.0, 0.5))
    for angle in (0.0, 2.0):

        def turned(x, half=angle / 2):
            x = x.clone()
            x[:, task.step.nq + 3 : task.step.nq + 7] = torch.tensor([0.0, 0.0, np.sin(half), np.cos(half)])
            return x

        state, after, blocks = one_step(task, action, change=turned)
        seen = task.step.observe(state=state, object=torch.tensor([1.0, 0.1, 2.0], dtype=DOUBLE)).seen
        found.append(torch.cat([seen, after[-7:], *blocks.values()]))
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)


@pytest.mark.parametrize("thing", [Cube(), Cylinder()])
def test_objects(thing):
    """Points on a surface have no distance, normals are slopes of the distance, inertias those of the shape."""
    from costate.sim.scene.parts import solid_inertia

    p, one = ca.SX.sym("p", 3), ca.SX(1.0)
    distance = ca.Function("d", [p], [thing.distance(p, one), ca.gradient(thing.distance(p, one), p)])
    surfaced = ca.Function("s", [p], [thing.surfaced(p, one), thing.normal(p, one)])
    for way in ([0.05, 0.01, -0.004], [-0.01, 0.04, 0.01], [0.004, -0.003, 0.06]):
        on, normal = (np.array(x).ravel() for x in surfaced(way))
        d, slope = distance(1.05 * on)  # far enough from the surface, where a root is smoothed
        assert abs(float(distance(on)[0])) < 1e-5
        np.testing.assert_allclose(normal, np.array(slope).ravel(), atol=2e-3)
        assert float(d) == pytest.approx(0.05 * on @ normal, abs=4e-5)
    inertia = np.array(ca.DM(thing.radii(ca.DM(1.0)))).ravel()
    np.testing.assert_allclose(np.diag(solid_inertia(thing.shape(), 1.0)), inertia, rtol=1e-12)


# --- execution -----------------------------------------------------------------------------------------------------


def test_the_executor_presses_with_the_proposed_force(task):
    """The lead of the targets, times the stiffness, is J^T f of the robot's own Jacobian."""
    force, n = np.array([-4.0, 1.0, 2.0]), task.step.nq
    action, executor = (
        proposal(task, 0, force=force),
        Executor(task.step, replace(task.options.servos, squeeze=1.0), 0.01),
    )
    action[-3:] = 0.0
    before = one_step(task, action)[0]
    out = executor.kernel(state=before, action=action, object=torch.tensor([1.0, 0.01, 2.0], dtype=DOUBLE))
    stiffness, _ = executor._gains
    torque = (out.target - out.following) * torch.tensor(stiffness)
    robot, tip = Robot(task.step.hand.model).double(), task.step.hand.tips[0]
    J, pose = robot.jacobian(before[:n], tip.link), robot.forward_kinematics(before[:n], tip.link)
    arm = pose.rotation.numpy() @ np.array([0.0, -tip.radius, 0.01])
    f = rotation(before[n + 3 : n + 7].numpy()) @ (0.1 * force)
    expected = J.numpy().T @ np.concatenate([f, np.cross(arm, f)])
    np.testing.assert_allclose(torque, expected, atol=2e-4 * np.abs(expected).max())


def test_squeezing_keeps_the_sum():
    """Opposite forces grow by the factor; what they carry together stays."""
    found = _squeezed([ca.SX([1.0, 0.0, 0.5]), ca.SX([-1.0, 0.0, 0.5])], 3.0)
    np.testing.assert_allclose(np.array([ca.DM(f) for f in found])[..., 0], [[3, 0, 0.5], [-3, 0, 0.5]], atol=1e-12)


def test_the_judge(task):
    episodes = task.draw(4, torch.Generator().manual_seed(5), DOUBLE)
    end, n = episodes.state.clone(), task.step.nq
    end[:, n + 2] += torch.tensor([0.0901, 0.1099, 0.0899, 0.1], dtype=DOUBLE)
    half = 0.5 * np.radians(10.1)
    end[3, n + 3 : n + 7] = torch.tensor([np.sin(half), 0, 0, np.cos(half)])
    verdict = task.judge(Trajectory(torch.stack([episodes.state, end]), torch.zeros(0), episodes))
    assert verdict.success.tolist() == [True, True, False, False]


def test_episodes_differ_as_the_options_say():
    task = Grasp(varied(honest(ManipulationOptions())))
    episodes = task.draw(200, torch.Generator().manual_seed(6), DOUBLE)
    scale, mass, friction = episodes.thing.T
    assert 0.8 <= float(scale.min()) < 0.82 and 1.18 < float(scale.max()) <= 1.2
    factor = mass / (0.1 * scale**3)
    assert 0.5 <= float(factor.min()) < 0.55 and 1.9 < float(factor.max()) <= 2.0
    assert float(friction.min()) >= 0.6 and float(friction.max()) <= 1.0
    np.testing.assert_allclose(episodes.state[:, task.step.nq + 2], 0.03 * scale)
    with pytest.raises(ValueError, match="masses"):
        ManipulationOptions(masses=(2.0, 1.0))


def test_measurements_have_the_noise_that_is_asked_for():
    """About the true pose, along and about each axis; the starts are the same without it."""
    usual, degree = honest(ManipulationOptions()), np.radians(1.0)
    task, plain = Grasp(replace(usual, noise=1e-3, turn_noise=degree)), Grasp(usual)
    noisy, same = (t.draw(400, torch.Generator().manual_seed(6), DOUBLE) for t in (task, plain))
    torch.testing.assert_close(noisy.state, same.state)
    pose, seen = task.pose(noisy.state), task.observe(noisy.state, 3, noisy)
    torch.testing.assert_close(plain.observe(same.state, 3, same)[:, :7], pose)
    torch.testing.assert_close(seen[:, 3:7].norm(dim=-1), torch.ones(400, dtype=DOUBLE))
    spread = torch.cat([seen[:, :3] - pose[:, :3], between(pose[:, 3:], seen[:, 3:7])], -1).std(0)
    np.testing.assert_allclose(spread, [1e-3] * 3 + [degree] * 3, rtol=0.15)


def test_the_estimated_curvature_is_a_preconditioner(task, drawn):
    """Its inverse takes all weights, is symmetric and positive definite, and is that of the damping alone if this is large."""
    episodes, policy = drawn
    near = task.curvature(policy, episodes, 2, torch.Generator().manual_seed(1))
    n, random = sum(w.numel() for w in policy.parameters()), torch.Generator().manual_seed(2)
    a, b = torch.randn(2, 1, n, generator=random, dtype=DOUBLE)
    little, much = torch.full((1,), 1e-3, dtype=DOUBLE), torch.full((1,), 1e20, dtype=DOUBLE)
    assert float((a * near(b, little)).sum()) == pytest.approx(float((b * near(a, little)).sum()), rel=1e-6)
    assert float((a * near(a, little)).sum()) > 0
    torch.testing.assert_close(1e20 * near(a, much), a, rtol=1e-6, atol=1e-6)


def test_turn_counts_half_a_turn():
    task = Turn()
    episodes = task.draw(2, torch.Generator().manual_seed(9), DOUBLE)
    end = episodes.state.clone()
    end[:, task.step.nq] += torch.tensor([pi, 0.9 * pi])
    verdict = task.judge(Trajectory(torch.stack([episodes.state, end]), torch.zeros(0), episodes))
    assert verdict.success.tolist() == [True, False]
    torch.testing.assert_close(verdict.error, torch.tensor([0.0, 18.0], dtype=DOUBLE), atol=1e-4, rtol=0)


def rotation(q):
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
