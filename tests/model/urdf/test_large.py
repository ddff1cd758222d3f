"""Large and hostile URDF files are read, or refused, in a time that grows with their length only."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.model.urdf.test_details import joint, robot
from tests.model.urdf.test_faults import inertial

from costate.model import Model, ModelError, ModelWarning, read_urdf
from costate.model.errors import Assumptions
from costate.model.joint import Joint
from costate.model.model import Link
from costate.model.tree import order

LINKS = 3000
SECONDS = 10.0
"""Bound on processor time; what was quadratic took minutes."""


def tree(parent: Callable[[int], int], count: int = LINKS) -> str:
    joints = "".join(joint(f"j{i}", "continuous", f"l{parent(i)}", f"l{i}") for i in range(1, count))
    return robot(*(f"l{i}" for i in range(count)), joints=joints)


def mimics(follows: Callable[[int], int], count: int) -> str:
    mimic = '<limit lower="0" upper="1" effort="1" velocity="1"/><mimic joint="j{}" multiplier="0.5" offset="1"/>'
    inside = [mimic.format(follows(i)) if i > 1 else "" for i in range(1, count)]
    joints = "".join(joint(f"j{i}", "continuous", "l0", f"l{i}", inside[i - 1]) for i in range(1, count))
    return robot(*(f"l{i}" for i in range(count)), joints=joints)


def read(folder: Path, text: str) -> Model:
    path = folder / "large.urdf"
    path.write_text(text)
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            return read_urdf(path)
    finally:
        assert time.process_time() - start < SECONDS


@pytest.mark.parametrize("end", ["x", "e", ".x", "e1x", "."])
def test_numbers_of_many_digits(tmp_path: Path, end: str) -> None:
    with pytest.raises(ModelError, match=r"<mass> of <link 'heavy'> value=\"1111.* is not a finite number"):
        read(tmp_path, inertial(mass="1" * 100_000 + end))


def test_a_number_of_many_digits_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, inertial(mass="1." + "0" * 100_000 + "1")).links[0].inertia.mass == 1.0


@pytest.mark.parametrize("text", [" <?xml a" * 50_000, " <?xml " + "?" * 500_000, "<?xml " * 50_000])
def test_long_declarations(tmp_path: Path, text: str) -> None:
    with pytest.raises(ModelError, match="not well-formed XML"):
        read(tmp_path, f'<robot name="r"><link name="a"/>{text}</robot>')


def test_long_chains_and_wide_stars(tmp_path: Path) -> None:
    chain = read(tmp_path, tree(lambda i: i - 1))
    assert [j.parent for j in chain.joints] == [f"l{i}" for i in range(LINKS - 1)]
    star = read(tmp_path, tree(lambda i: 0))
    assert [j.child for j in star.joints] == [f"l{i}" for i in range(1, LINKS)]


@pytest.mark.parametrize("parent", [lambda i: i - 1, lambda i: 0])
def test_thirty_thousand_links_are_ordered_at_once(parent: Callable[[int], int]) -> None:
    links = {f"l{i}": Link(f"l{i}") for i in range(30_000)}
    joints = [Joint(f"j{i}", "fixed", f"l{parent(i)}", f"l{i}") for i in range(1, len(links))]
    start = time.process_time()
    ordered, _ = order("large", links, joints)
    assert [link.name for link in ordered] == list(links)
    assumed = Assumptions("large")
    for name in (*links, *links):
        assumed.note("this", name)
    assert assumed.found == {"this": list(links)}
    assert time.process_time() - start < SECONDS


def test_many_joints_mimic_one(tmp_path: Path) -> None:
    model = read(tmp_path, mimics(lambda i: 1, LINKS))
    assert all(j.mimic and j.mimic.joint == "j1" for j in model.joints[1:])


def test_a_chain_of_mimic_joints_has_a_limit_that_can_be_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = mimics(lambda i: i - 1, 120)
    with pytest.raises(ModelError, match=r"large.urdf: joint 'j102': 101 mimic joints .* COSTATE_MAX_MIMIC_CHAIN"):
        read(tmp_path, text)
    monkeypatch.setenv("COSTATE_MAX_MIMIC_CHAIN", "200")
    last = read(tmp_path, text).joints[-1].mimic
    assert last is not None
    # q_n = 1 + q_{n - 1} / 2 from q_1 on: q_n = 2 - 2^-(n - 2) + q_1 2^-(n - 1).
    assert (last.joint, last.multiplier, last.offset) == ("j1", 0.5**118, pytest.approx(2 - 0.5**117, rel=1e-15))
    monkeypatch.setenv("COSTATE_MAX_MIMIC_CHAIN", "many")
    with pytest.raises(ValueError, match="COSTATE_MAX_MIMIC_CHAIN='many' is not a limit"):
        read(tmp_path, text)
