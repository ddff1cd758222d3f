"""`costate gradcheck`: right robots and worlds pass, wrong ones are found, with exit code 1; 3 is for what was not compared."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from costate.audit import robots
from costate.audit.gradcheck import gradcheck
from costate.cli.main import main

FALLING = """
import costate as cs
ball = cs.Body("ball", [cs.shapes.sphere(0.1)], mass=1.0)
ground = cs.Static("ground", cs.shapes.plane())
world = cs.World(bodies=[ball], scenery=[ground], contact=cs.Compliant(smoothing=5e-3), dt=2e-3)
state = world.initial_state()
state[2] = 0.3
"""

SPRING = """
import casadi as ca
import torch
from costate.kernel import Kernel
x, y, seed = (ca.SX.sym(name) for name in ("x", "y", "seed"))
adjoint = [x, y, seed], [FACTOR * seed * ca.cos(x)]
spring = Kernel("spring", {"x": x}, {"y": ca.sin(x)}, adjoint=adjoint)
functions = {"spring": (lambda x: spring(x=x).y, [torch.tensor([0.3], dtype=torch.float64)])}
"""


def test_a_robot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["gradcheck", "pendulum1", "--functions", "gravity_torques", "momentum", "--report", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "right" in shown and "values are compared with Pinocchio" in shown
    assert "Derivatives by input" in page.read_text()


def test_rounding_of_what_is_zero_is_no_reason_not_to_compare() -> None:
    """The Jacobian of a single link does not change: its rate, and all derivatives of that, are what rounding leaves."""
    assert main(["gradcheck", "pendulum1", "--functions", "jacobian_dot"]) == 0


@pytest.mark.parametrize(("wrong", "right"), [(0.0, True), (1e-6, False)])
def test_a_known_scale_still_finds_what_is_wrong(wrong: float, right: bool) -> None:
    """A function that is zero because terms of size one cancel, once with a derivative that is not."""

    def zero(x: torch.Tensor) -> torch.Tensor:
        off = wrong * (x - x.detach())  # no value, but a derivative
        return x.sin().square() + x.cos().square() - 1 + off

    found = gradcheck(zero, [torch.tensor([0.3, -1.2, 2.0])], scale=1.0, second_order=False, float32=False)
    assert bool(found.failures) != right and all(c.compared for c in found.checks)


def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots, "_joined", lambda values, k: 1.001 * torch.cat(list(values.values()), -1)[k].numpy())
    options = ["--functions", "gravity_torques", "--second-order", "False", "--float32", "False"]
    assert main(["gradcheck", "pendulum1", *options]) == 1


@pytest.mark.parametrize(("factor", "code"), [("1.0", 0), ("1.001", 1)])
def test_a_wrong_gradient_is_found(factor: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel with a derivative of the user's own, once right and once wrong by a thousandth."""
    path = tmp_path / "spring.py"
    path.write_text(SPRING.replace("FACTOR", factor))
    assert main(["gradcheck", str(path)]) == code
    shown = capsys.readouterr().out
    assert ("wrong: <u, J v> = <J^T u, v>" in shown) == bool(code)


def test_what_was_not_compared_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "jump.py", tmp_path / "page.html"
    path.write_text("import torch\nfunctions = {'jump': (lambda x: x.sign() + x, [torch.zeros(1).double()])}\n")
    assert main(["gradcheck", str(path), "--report", str(page)]) == 3
    shown = capsys.readouterr().out
    assert "jump: not compared: d output 0" in shown and "verdict: not compared (exit code 3)" in shown
    assert "not compared" in page.read_text()
    with pytest.raises(SystemExit):
        main(["gradcheck", "--help"])
    assert "3 some could not be compared" in " ".join(capsys.readouterr().out.split())


def test_a_world(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "falling.py"
    path.write_text(FALLING)
    assert main(["gradcheck", str(path), "--steps", "5"]) == 0
    assert "step, at the start" in capsys.readouterr().out


def test_what_it_cannot_check(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1")
    assert main(["gradcheck", str(empty)]) == 2
    assert "defines nothing to check" in capsys.readouterr().err
    assert main(["gradcheck", "pendulum1", "--functions", "warp"]) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["ur5", "--workers", "2"], "--cluster and --workers share the accuracy matrix"),
        (["ur5", "--matrix"], "--matrix checks everything"),
    ],
)
def test_the_matrix_has_its_own_options(given: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gradcheck", *given]) == 2
    assert said in capsys.readouterr().err
