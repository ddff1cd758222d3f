"""The door for contact: nothing outside of `sim/contact` tells contact models apart."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import costate as cs

ROOT = Path(cs.__file__).parent
MODELS = {"Hard", "PGS", "Newton", "Compliant", "NoContact", "SmoothContact"}


def told_apart(source: str) -> list[int]:
    """Lines that ask for the class of a contact model: isinstance, or a type compared."""
    found = []
    for node in ast.walk(ast.parse(source)):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
        asked = node.args[1] if is_call else node if isinstance(node, ast.Compare) else None  # type: ignore[attr-defined]
        if asked is not None and MODELS & {
            getattr(n, "id", getattr(n, "attr", None))
            for n in ast.walk(asked)
            if isinstance(n, ast.Name | ast.Attribute)
        }:
            found.append(node.lineno)  # type: ignore[attr-defined]
    return found


def test_the_scan_finds_what_it_looks_for() -> None:
    assert told_apart("isinstance(x, cs.PGS | Newton)") == [1]
    assert told_apart("ok = 1\nif type(x) is Compliant: pass") == [2]
    assert told_apart("isinstance(x, int)\nPGS()") == []


def test_no_file_outside_tells_contact_models_apart() -> None:
    files = [p for p in ROOT.rglob("*.py") if ROOT / "sim" / "contact" not in p.parents]
    assert len(files) > 100
    found = [f"{p.relative_to(ROOT)}:{line}" for p in files for line in told_apart(p.read_text())]
    assert found == []


def test_inside_it_is_not_needed_either() -> None:
    found = [p.name for p in (ROOT / "sim" / "contact").rglob("*.py") if told_apart(p.read_text())]
    assert found == []


@pytest.mark.parametrize("model", [cs.Hard(), cs.PGS(), cs.Newton(), cs.Compliant()])
def test_models_answer_for_their_integrators(model: cs.ContactModel) -> None:
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)
    for integrator in ("semi_implicit", "explicit", "implicit", "rk4"):
        if integrator in model.integrators:
            assert cs.World(bodies=[ball], contact=model, integrator=integrator).setup.integrator == integrator
        else:
            with pytest.raises(ValueError, match=integrator):
                cs.World(bodies=[ball], contact=model, integrator=integrator)


def test_options_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown cone 'round' of PGS: use one of cone, box, pyramid"):
        cs.World(contact=cs.PGS(cone="round"))
    with pytest.raises(ValueError, match="unknown correction 'some' of PGS"):
        cs.World(contact=cs.PGS(correction="some"))
    with pytest.raises(TypeError, match=r"a ContactModel of your own or None, not .*: PGS\(\)"):
        cs.World(contact=cs.PGS)  # type: ignore[arg-type]
