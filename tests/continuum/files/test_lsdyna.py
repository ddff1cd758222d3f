"""LS-DYNA files: each way to write a card, written meshes read again, and what is wrong with a file."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from costate.continuum import EVER, HexMesh, cylinder, published_size, read_lsdyna, wall, write_lsdyna

NODES = [
    (0, 0, 0),
    (1, 0, 0),
    (1, 1, 0),
    (0, 1, 0),
    (0, 0, 1),
    (1, 0, 1),
    (1, 1, 1),
    (0, 1, 1),
    (0, 0, 2),
    (1, 0, 2),
    (1, 1, 2),
    (0, 1, 2),
]
SOLIDS = {7: [11, 12, 13, 14, 15, 16, 17, 18], 9: [15, 16, 17, 18, 19, 20, 21, 22]}
"""Two cubes of a millimetre on top of each other, with nodes from 11 on."""

CURVE = (
    "*DEFINE_CURVE\n$# a comment\n         1                 1.0       1.0\n          0.25000000          9.00000000\n"
)


def cards(node: str, solid: str) -> str:
    nodes = "\n".join(node.format(k, *(float(v) for v in x)) for k, x in enumerate(NODES, 11))
    return (
        f"*NODE\n{nodes}\n*ELEMENT_SOLID\n" + "\n".join(solid.format(k, 1, *e) for k, e in SOLIDS.items()) + "\n*END\n"
    )


FIXED = cards("{:8d}{:16.6f}{:16.6f}{:16.6f}       0       0", "{:8d}" * 10)
FORMS = {
    "columns": FIXED,
    "columns without a gap": cards("{:8d}{:16.9e}{:16.9e}{:16.9e}", "{:8d}" * 10),
    "two lines": cards("{:8d}{:16.6f}{:16.6f}{:16.6f}", "{:8d}{:8d}\n" + "{:8d}" * 8 + "       0       0"),
    "commas": cards("{},{},{},{}", ",".join(["{}"] * 10)),
    "commas and two lines": cards("{}, {}, {}, {}, 0, 0", "{}, {}\n" + ", ".join(["{}"] * 8)),
    "blanks": cards("{} {} {} {}", " ".join(["{}"] * 10)),
    "long": cards("{:20d}{:20.6f}{:20.6f}{:20.6f}", "{:20d}" * 10),
    "long by a mark": cards("{:20d}{:20.6f}{:20.6f}{:20.6f}", "{:20d}" * 10)
    .replace("NODE", "NODE +")
    .replace("SOLID", "SOLID +"),
    "ten digits": cards("{:10d}{:16.6f}{:16.6f}{:16.6f}", "{:10d}" * 10)
    .replace("NODE", "NODE %")
    .replace("SOLID", "SOLID %"),
    "small letters": FIXED.lower(),
}
OTHER = """*KEYWORD
*TITLE
anything, 1 2 3
*SET_NODE_LIST
         3
$#    nid1

*SET_SOLID
         1MECH
         7         9
"""


def read(folder: Path, text: str, **options: object) -> HexMesh:
    (folder / "mesh.k").write_text(text)
    return read_lsdyna(folder / "mesh.k", **options)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("form", FORMS)
def test_each_way_to_write_a_card(tmp_path: Path, form: str) -> None:
    long = CURVE.replace("         1                 1.0       1.0", f"{1:20d}{'':20}{1.0:20}{1.0:20}")
    before = "*KEYWORD LONG=Y\n" + long if form == "long" else OTHER + CURVE
    mesh = read(tmp_path, before + FORMS[form])
    assert mesh.birth.tolist() == [EVER, 0.25]
    np.testing.assert_allclose(mesh.centres, [[5e-4, 5e-4, 5e-4], [5e-4, 5e-4, 15e-4]])
    np.testing.assert_allclose(mesh.volumes, 1e-9)
    assert len(mesh.nodes) == 12


def test_units_and_births_that_are_not_wanted(tmp_path: Path) -> None:
    assert read(tmp_path, FIXED, unit=1.0).volume == pytest.approx(2)
    assert read(tmp_path, CURVE + FIXED, curve=0).birth.tolist() == [EVER, EVER]


def test_curves_are_scaled_and_chosen(tmp_path: Path) -> None:
    scaled = "*DEFINE_CURVE_TITLE\nbirths\n         4         0       2.0       1.0       1.0       0.0\n0.5,7\n1.5,9\n"
    load = "*DEFINE_CURVE\n         5\n0.0,0.5\n1.0,1.5\n"
    assert read(tmp_path, scaled + load + FIXED).birth.tolist() == [3.0, 5.0]
    assert read(tmp_path, CURVE + scaled + FIXED, curve=1).birth.tolist() == [EVER, 0.25]
    with pytest.raises(
        ValueError, match=r"has the curves \[1, 4\], of which 2 could hold births; expected one: say which by curve="
    ):
        read(tmp_path, CURVE + scaled + FIXED)
    with pytest.raises(ValueError, match=r"has no \*DEFINE_CURVE 3; it has \[1, 4\]"):
        read(tmp_path, CURVE + scaled + FIXED, curve=3)


def test_nodes_of_no_element_are_left_out(tmp_path: Path) -> None:
    assert (
        len(
            read(
                tmp_path,
                FIXED.replace("*ELEMENT", "      99             5.0             5.0             5.0\n*ELEMENT"),
            ).nodes
        )
        == 12
    )


@pytest.mark.parametrize("part", [wall(), cylinder(inner=0.005)], ids=["wall", "tube"])
def test_round_trip(tmp_path: Path, part) -> None:
    mesh = part.mesh
    write_lsdyna(tmp_path / "part.k", mesh)
    again = read_lsdyna(tmp_path / "part.k")
    np.testing.assert_array_equal(again.elements, mesh.elements)
    np.testing.assert_allclose(again.nodes, mesh.nodes, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(again.birth, mesh.birth, rtol=1e-12)


def test_fifteen_thousand_elements_are_read_quickly(tmp_path: Path) -> None:
    write_lsdyna(tmp_path / "large.k", published_size().mesh)
    start = time.process_time()
    assert len(read_lsdyna(tmp_path / "large.k").elements) == 15070
    assert time.process_time() - start < 5  # 0.5 s alone


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("      12        1.000000", "      12        1.0x0000", "'      12 .*; expected a node: number, x, y, z"),
        ("      12        1.000000", "      11        1.000000", "node 11 is defined a second time"),
        ("       9       1", "       7       1", "element 7 is defined a second time"),
        ("       9       1      15", "       9       1      95", "element 9 has node 95, which no \\*NODE defines"),
        ("      21      22", "      21", "element 9 has the nodes .*; expected eight"),
        ("       9       1", "     9.5       1", "expected whole numbers"),
        (
            "*ELEMENT_SOLID",
            "*ELEMENT_SOLID_ORTHO",
            "\\*ELEMENT_SOLID_ORTHO is not supported; expected \\*ELEMENT_SOLID only",
        ),
        ("*NODE", "*INCLUDE\nother.k\n*NODE", "\\*INCLUDE is not supported; put all of the mesh into one file"),
        ("          9.00000000", "         10.00000000", "curve 1 names element 10, which no \\*ELEMENT_SOLID defines"),
        ("         1        ", "                  ", "expected the number of the curve first, a whole one above 0"),
        ("          9.00000000", "", "expected two numbers, such as time and element"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = CURVE + FIXED
    assert old in text
    broken = text.replace(old, new, 1)
    number = next(k for k, (a, b) in enumerate(zip(text.splitlines(), broken.splitlines(), strict=False), 1) if a != b)
    with pytest.raises(ValueError, match=f"mesh.k, line {number}: .*{message}"):
        read(tmp_path, broken)


def test_bad_shapes_have_the_numbers_of_the_file(tmp_path: Path) -> None:
    bottom, top = "".join(f"{n:8d}" for n in SOLIDS[9][:4]), "".join(f"{n:8d}" for n in SOLIDS[9][4:])
    inverted = FIXED.replace(bottom + top, top + bottom)
    with pytest.raises(
        ValueError, match=r"mesh.k: 1 of 2 elements have a bad shape \(number 9\); element 9 is inverted"
    ):
        read(tmp_path, inverted)
    with pytest.raises(ValueError, match=r"has no \*ELEMENT_SOLID"):
        read(tmp_path, "*KEYWORD\n*END\n")
