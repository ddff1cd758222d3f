"""The tables of what is read of MuJoCo's compiled model."""

from __future__ import annotations

import numpy as np
import pytest

from costate.model.errors import Assumptions
from costate.model.mjcf.fields import compiled_fields, known_fields, note_fields, unknown_options

mujoco = pytest.importorskip("mujoco")
TEXT = '<mujoco><worldbody><body name="b"><joint name="j"/><geom name="g" size=".1" contype="0"/></body></worldbody></mujoco>'


class Newer:
    """A compiled model of a version of MuJoCo that has one field more."""

    def __init__(self, values: np.ndarray):
        self.model, self.jnt_backlash = mujoco.MjModel.from_xml_string(TEXT), values

    def __getattr__(self, name: str):
        return getattr(self.model, name)

    def __dir__(self) -> list[str]:
        return [*dir(self.model), "jnt_backlash"]


def test_every_field_of_the_installed_version_is_known() -> None:
    """A new field of MuJoCo must be put into one of the tables: read, derived or named."""
    model = mujoco.MjModel.from_xml_string(TEXT)
    assert set(compiled_fields(model)) - known_fields() == set()
    assert unknown_options(model) == []


@pytest.mark.parametrize(("value", "named"), [(0.0, {}), (0.1, ["j"])])
def test_fields_of_newer_versions_are_named_where_they_are_used(value: float, named: dict | list) -> None:
    assumed = Assumptions("file")
    note_fields(Newer(np.array([value])), assumed)
    assert assumed.found == (
        {"numbers of MuJoCo's that are not known here (jnt_backlash), left out": named} if named else {}
    )
