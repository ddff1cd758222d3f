"""Files for ParaView, read again by meshio."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from costate.continuum import HexMesh, VtkSeries, wall, write_vtk

MESH = wall(0.005, 0.002, 0.001).mesh


def test_each_moment_has_the_elements_alive_and_their_values(tmp_path: Path) -> None:
    meshio = pytest.importorskip("meshio")
    times = np.array([0.0, 0.25, 0.9])
    T = 300 + np.arange(len(MESH.nodes)) + 1000 * times[:, None]
    number = np.tile(np.arange(len(MESH.elements)), (3, 1))
    write_vtk(tmp_path / "build.pvd", MESH, times, {"temperature": T}, {"number": number})
    listed = [(float(d.attrib["timestep"]), d.attrib["file"]) for d in ET.parse(tmp_path / "build.pvd").iter("DataSet")]
    assert [t for t, _ in listed] == times.tolist()
    for k, (time, name) in enumerate(listed):
        frame = meshio.read(tmp_path / name)
        alive = MESH.alive(time)
        cells = frame.cells_dict["hexahedron"]
        assert len(cells) == alive and len(frame.points) == (MESH.node_birth <= time).sum()
        np.testing.assert_array_equal(frame.points[cells], MESH.nodes[MESH.elements[:alive]])
        np.testing.assert_array_equal(frame.point_data["temperature"][cells], T[k][MESH.elements[:alive]])
        np.testing.assert_array_equal(frame.cell_data["number"][0], np.arange(alive))
        assert np.isfinite(frame.cell_data["birth"][0]).all()
    assert [MESH.alive(t) for t, _ in listed] == sorted({MESH.alive(t) for t, _ in listed})


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    pytest.importorskip("meshio")
    with pytest.raises(ValueError, match=r"ends with '.vtu'; expected a name that ends with .pvd"):
        VtkSeries(tmp_path / "build.vtu", MESH)
    with VtkSeries(tmp_path / "build.pvd", MESH) as series:
        series.add(1.0)
        with pytest.raises(ValueError, match="time 1 s is added after 1 s; expected ascending times"):
            series.add(1.0)
        with pytest.raises(ValueError, match=r"T has the shape \(3,\); expected a row for each of \d+ nodes"):
            series.add(2.0, {"T": np.zeros(3)})
    later = HexMesh(MESH.nodes, MESH.elements, np.full(len(MESH.elements), 5.0))
    with pytest.raises(ValueError, match="at 1 s no element is alive; the first is born at 5 s"):
        VtkSeries(tmp_path / "late.pvd", later).add(1.0)
    with pytest.raises(ValueError, match="T has 1 moments; expected one for each of 2 times"):
        write_vtk(tmp_path / "short.pvd", MESH, [0.0, 1.0], {"T": np.zeros((1, len(MESH.nodes)))})


def test_without_meshio_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "meshio", None)
    with pytest.raises(ImportError, match=r"writing VTK files needs meshio: .*install .*\[continuum\]"):
        VtkSeries(tmp_path / "build.pvd", MESH)
