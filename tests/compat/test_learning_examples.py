"""The original's four learning examples, a few epochs of each, beside the original: the errors agree all the way."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch.utils.data import DataLoader

pytest.importorskip("differentiable_robot_model")

from benchmarks.identify import examples
from costate.compat.differentiable_robot_model import data_utils, rigid_body_params
from costate.compat.differentiable_robot_model.robot_model import DifferentiableKUKAiiwa


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def both(run, data, epochs: int) -> tuple[float, float]:
    ours, original = examples.packages()
    return examples.last(run(ours, data), epochs), examples.last(run(original, data), epochs)


def test_learn_dynamics() -> None:
    data = examples.inverse_dynamics_data(examples.packages()[1], 1000)
    ours, original = both(examples.learn_dynamics, data, 2)
    assert ours == pytest.approx(original, rel=1e-2)


def test_dynamics_are_learnt_alike_in_both_precisions() -> None:
    """At the published size, all epochs: where the original differs by more than this, it is its rounding and not ours."""
    ours, original = examples.packages()
    data = examples.inverse_dynamics_data(original, 1000)
    single = examples.learn_dynamics(ours, data)
    errors = [next(single) for _ in range(11)][1:]
    data.data = {name: column.double() for name, column in data.data.items()}
    torch.set_default_dtype(torch.float64)
    try:
        double = examples.learn_dynamics(ours, data)
        assert [next(double) for _ in range(11)][1:] == pytest.approx(errors, rel=5e-4)
    finally:
        torch.set_default_dtype(torch.float32)


def test_learn_forward_dynamics() -> None:
    data = examples.forward_dynamics_data(examples.packages()[1], 1000)
    ours, original = both(examples.learn_forward_dynamics, data, 1)
    assert ours == pytest.approx(original, rel=1e-2)


@pytest.mark.parametrize("toy", [True, False])
def test_learn_kinematics(toy: bool) -> None:
    data = examples.kinematics_data(examples.packages()[1], 20, toy)
    run = examples.learn_kinematics_toy if toy else examples.learn_kinematics_iiwa
    ours, original = both(run, data, 30)
    assert ours == pytest.approx(original, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("toy", [True, False])
def test_whole_kinematics_scripts(toy: bool) -> None:
    """As the original's own suite runs its examples: 250 samples, two epochs, each package with data that it makes itself."""
    learn = examples.learn_kinematics_toy if toy else examples.learn_kinematics_iiwa
    ours, original = (
        examples.last(learn(package, examples.kinematics_data(package, 250, toy)), 2) for package in examples.packages()
    )
    assert ours == pytest.approx(original, rel=1e-4)


@pytest.mark.parametrize("forward", [True, False])
def test_whole_dynamics_scripts(forward: bool) -> None:
    """Likewise, but alone: with 250 samples the original makes motions that stand still, and learns NaN."""
    ours, _ = examples.packages()
    generate = examples.forward_dynamics_data if forward else examples.inverse_dynamics_data
    learn = examples.learn_forward_dynamics if forward else examples.learn_dynamics
    data = generate(ours, 250)
    assert all(column.std(0).min() > 0 for column in data.data.values())
    assert 0 < examples.last(learn(ours, data), 2) < 0.1


def test_what_scripts_print_and_look_at(capsys: pytest.CaptureFixture[str]) -> None:
    """Names of links, learnable parameters by name and value, and the offset of a joint of the robot that made the data."""
    seen = []
    for package in examples.packages():
        with examples.quiet():
            robot = package.robot_model.DifferentiableTwoLinkRobot(device="cpu")
        start = torch.tensor([[0.1, 0.2, 0.3]])
        module = package.params.UnconstrainedTensor(dim1=1, dim2=3, init_tensor=start)
        robot.make_link_param_learnable("arm2", "trans", module)
        capsys.readouterr()
        robot.print_link_names()
        names = capsys.readouterr().out
        robot.print_learnable_params()
        shown = capsys.readouterr().out
        assert "0.1000, 0.2000, 0.3000" in shown and "requires_grad=True" in shown
        offsets = [torch.as_tensor(robot._bodies[k].trans()).detach().reshape(3) for k in (1, 2)]
        seen.append((names, [x.tolist() for x in offsets], sum(p.numel() for p in robot.parameters())))
    assert seen[0][0] == seen[1][0] and seen[0][2] == seen[1][2] == 3
    torch.testing.assert_close(torch.tensor(seen[0][1]), torch.tensor(seen[1][1]))


def test_kinematics_are_learnt_in_the_end() -> None:
    ours, original = examples.packages()
    data = examples.kinematics_data(original, 100, False)
    assert examples.last(examples.learn_kinematics_iiwa(ours, data), 3000) < 1e-8


def test_data_sets() -> None:
    robot = DifferentiableKUKAiiwa()
    data = data_utils.generate_sine_motion_inverse_dynamics_data(robot, n_data=40, dt=0.01, freq=0.1)
    assert torch.allclose(data.data["qd"][:-1], (data.data["q"].diff(dim=0)) / 0.01, atol=1e-2)
    q, qd, qdd, tau = next(iter(DataLoader(data, batch_size=8, shuffle=True)))
    assert q.shape == qd.shape == qdd.shape == (8, 7)
    assert torch.allclose(robot.compute_inverse_dynamics(q, qd, qdd), tau, atol=1e-4)
    pairs = DataLoader(data, batch_size=8, collate_fn=lambda batch: [sample[0] for sample in batch])
    assert torch.equal(torch.stack(next(iter(pairs))), data.data["q"][:8])
    assert len(data_utils.generate_random_inverse_dynamics_data(robot, 5)) == 5
    assert data_utils.ForwardDynamicsDataset(data.data).var().shape == (7,)


INERTIA = torch.tensor([[0.3, 0.01, 0.02], [0.01, 0.25, -0.03], [0.02, -0.03, 0.2]], dtype=torch.float32)


@pytest.mark.parametrize(
    "module",
    [
        lambda: rigid_body_params.SymmPosDef3DInertiaMatrixNet(init_param=INERTIA[None]),
        lambda: rigid_body_params.CovParameterized3DInertiaMatrixNet(init_param=INERTIA[None]),
        lambda: rigid_body_params.Symm3DInertiaMatrixNet(init_param=INERTIA[None]),
        lambda: rigid_body_params.TriangParam3DInertiaMatrixNet(1e-6, init_param=INERTIA[None]),
    ],
    ids=["definite", "covariance", "symmetric", "triangle"],
)
def test_inertia_parametrisations_start_where_told_and_learn(module) -> None:
    net = module()
    assert torch.allclose(net(), INERTIA, atol=2e-6)
    robot = DifferentiableKUKAiiwa()
    robot.make_link_param_learnable("iiwa_link_3", "inertia_mat", net)
    robot.freeze_learnable_link_param("iiwa_link_3", "inertia_mat")
    assert not any(p.requires_grad for p in robot.parameters())
    robot.unfreeze_learnable_link_param("iiwa_link_3", "inertia_mat")
    q = torch.randn(4, 7)
    robot.compute_inverse_dynamics(q, q, q).sum().backward()
    assert all(float(p.grad.abs().sum()) > 0 for p in robot.parameters() if p.grad is not None)


def test_the_callers_tensors_are_left_alone() -> None:
    robot = DifferentiableKUKAiiwa()
    q, qd, f = torch.randn(3, 2, 7).unbind(0)
    f.requires_grad_()
    before = f.detach().clone()
    robot.compute_forward_dynamics(q, qd, f, use_damping=True).sum().backward()
    assert torch.equal(f.detach(), before) and f.grad is not None
    start = torch.zeros(1, 3)
    module = rigid_body_params.UnconstrainedTensor(1, 3, init_tensor=start)
    with torch.no_grad():
        module.param.add_(1)
    assert torch.equal(start, torch.zeros(1, 3))


def test_quaternion_gradients_are_right() -> None:
    robot = DifferentiableKUKAiiwa()
    q = torch.randn(3, 7, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda x: robot.compute_forward_kinematics(x, "iiwa_link_ee")[1], (q.requires_grad_(),)
    )


def test_what_was_wrong_is_right(tmp_path) -> None:
    """Prismatic joints, oblique axes, inertial rpy: against Pinocchio."""
    pin = pytest.importorskip("pinocchio")
    from costate.compat.differentiable_robot_model.robot_model import DifferentiableRobotModel

    (tmp_path / "robot.urdf").write_text(
        """<robot name="odd"><link name="base"/>
        <link name="a"><inertial><origin xyz="0.1 0 0.2" rpy="0.3 0.4 0.5"/><mass value="2"/>
        <inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.2" iyz="0" izz="0.15"/></inertial></link>
        <link name="b"><inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
        <joint name="j1" type="revolute"><parent link="base"/><child link="a"/><origin xyz="0 0 1" rpy="0.1 0.2 0.3"/>
        <axis xyz="1 2 3"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
        <joint name="j2" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="0 1 1"/>
        <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
    )
    ours = DifferentiableRobotModel(tmp_path / "robot.urdf", "odd")
    theirs = pin.buildModelFromUrdf(str(tmp_path / "robot.urdf"))
    q, v, a = torch.randn(3, 2, dtype=torch.float64).unbind(0)
    expected = pin.rnea(theirs, theirs.createData(), q.numpy(), v.numpy(), a.numpy())
    assert torch.allclose(ours.compute_inverse_dynamics(q, v, a), torch.as_tensor(expected), atol=1e-10)
