"""Graphs of unknown origin are refused before anything is evaluated or written, with the step that is wrong."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from costate.core.tensors import write_tensors
from costate.export import write_c_header
from costate.train.controller import load_policy
from costate.train.network.formula import OPERATIONS
from costate.train.network.primitives import PRIMITIVES
from costate.train.network.rules import RULES

INJECTED = '0 + 0); system("id"); (void)(0'


def step(kind: str, inputs: list[str], out: str, shape: list[int], **options: Any) -> dict[str, Any]:
    return {"kind": kind, "inputs": inputs, "out": out, "shape": shape, "options": options}


NOTE = {
    "task": "x",
    "inputs": [["a", "m"], ["b", "m"], ["c", "m"], ["d", "m"]],
    "outputs": [["u", "N"], ["v", "N"]],
    "about": "a test",
    "graph": {
        "inputs": [["x", 4]],
        "outputs": ["y"],
        "steps": [
            step("take", ["x"], "s0", [3], axis=-1, indices=[2, 0, 1]),
            step("reshape", ["s0"], "s1", [3, 1]),
            step("expand", ["s1"], "s2", [3, 2]),
            step("permute", ["s2"], "s3", [2, 3], axes=[-1, -2]),
            step("matmul", ["s3", "s2"], "s4", [2, 2]),
            step("reduce", ["s4"], "s5", [2], by="sum", axis=-1, keep=False),
            step("constant", ["x", "c"], "s6", [2]),
            step("join", ["s5", "s6"], "s7", [4], axis=-1),
            step("linear", ["s7", "w", "k"], "s8", [2]),
            step("pointwise", ["s8", "c"], "y", [2], formula=["add", ["tanh", "x"], ["mul", 0.5, "y"]]),
        ],
    },
}
"""A graph with a step of every kind."""
CONSTANTS = {"w": torch.arange(8.0).reshape(2, 4) / 8, "k": torch.ones(2), "c": torch.tensor([0.5, -1.0])}


def written(folder: Path, note: dict[str, Any], **tensors: torch.Tensor) -> Path:
    given = {f"network.{name}": t for name, t in CONSTANTS.items()}
    given |= {"action.offset": torch.zeros(2), "action.scale": torch.ones(2)} | tensors
    write_tensors(folder / "policy.safetensors", given)
    (folder / "policy.json").write_text(json.dumps(note))
    return folder


def test_the_sound_graph_has_every_kind_and_is_read(tmp_path: Path) -> None:
    assert {s["kind"] for s in NOTE["graph"]["steps"]} == set(RULES) == set(PRIMITIVES)
    controller = load_policy(written(tmp_path, NOTE))
    a, b, c, _ = x = np.array([0.1, -0.4, 0.3, 2.0])
    p = np.array([c, a, b])
    sums = np.full(2, 2 * (p @ p))  # both entries of a row of s3 s2 are p . p
    joined = np.concatenate([sums, [0.5, -1.0]])
    wanted = np.tanh(CONSTANTS["w"].double().numpy() @ joined + 1) + 0.5 * np.array([0.5, -1.0])
    np.testing.assert_allclose(controller(x), wanted, rtol=1e-15)
    assert "costate_policy(" in write_c_header(controller.network, tmp_path / "policy.h").read_text()


CASES: dict[str, tuple[int, dict[str, Any], str]] = {
    "code for an index": (
        0,
        {"options": {"axis": -1, "indices": [INJECTED] * 3}},
        "expected whole numbers from 0 to 3",
    ),
    "an index too far": (0, {"options": {"axis": -1, "indices": [2, 0, 4]}}, "expected whole numbers from 0 to 3"),
    "an index below": (0, {"options": {"axis": -1, "indices": [2, 0, -1]}}, "expected whole numbers from 0 to 3"),
    "an index that is true": (0, {"options": {"axis": -1, "indices": [2, 0, True]}}, "expected whole numbers"),
    "an axis as text": (0, {"options": {"axis": INJECTED, "indices": [0, 1, 2]}}, "expected -1 to -1"),
    "an axis from the front": (0, {"options": {"axis": 0, "indices": [0, 1, 2]}}, "expected -1 to -1"),
    "an option too many": (0, {"options": {"axis": -1, "indices": [0, 1, 2], "more": 1}}, "has the options"),
    "no options": (0, {"options": {}}, "has the options"),
    "a shape with code": (1, {"shape": [INJECTED, 1]}, "whole numbers from 1 on"),
    "other numbers": (1, {"shape": [3, 2]}, "expected as many numbers"),
    "a shape of halves": (1, {"shape": [1.5, 2]}, "whole numbers from 1 on"),
    "1e12 numbers": (2, {"shape": [3, 10**12]}, "whole numbers from 1 on"),
    "1e9 numbers": (2, {"shape": [3, 10**9 // 3]}, "exceed the limit of 10,000,000"),
    "an axis that is not 1": (2, {"shape": [4, 2]}, "but for axes of size 1"),
    "too many axes": (1, {"shape": [3, *[1] * 100]}, "up to 16 whole numbers"),
    "an axis twice": (3, {"options": {"axes": [-1, -1]}}, "expected each from -2 to -1 once"),
    "a product that does not fit": (4, {"inputs": ["s3", "s3"]}, "expected \\(..., n, k\\) and \\(..., k, m\\)"),
    "another reduction": (
        5,
        {"options": {"by": "__import__", "axis": -1, "keep": False}},
        "expected one of sum, max, min",
    ),
    "keep as a list": (5, {"options": {"by": "sum", "axis": -1, "keep": []}}, "and true or false"),
    "a value for a constant": (6, {"inputs": ["x", "x"]}, "expected a value and a constant"),
    "parts that do not fit": (7, {"inputs": ["s5", "s4"]}, "expected others to be the same"),
    "a constant among values": (7, {"inputs": ["s5", "c"]}, "expected one or more, values"),
    "weights that do not fit": (8, {"inputs": ["s5", "w", "k"]}, "constants W \\(m, n\\) and b \\(m\\)"),
    "weights that are values": (8, {"inputs": ["s7", "s4"]}, "constants W \\(m, n\\) and b \\(m\\)"),
    "no weights": (8, {"inputs": ["s7"]}, "constants W \\(m, n\\) and b \\(m\\)"),
    "code for a constant": (9, {"options": {"formula": ["add", "x", INJECTED]}}, "the argument"),
    "code for an operation": (9, {"options": {"formula": [INJECTED, "x"]}}, "is not known"),
    "an object for a constant": (9, {"options": {"formula": ["add", "x", {"a": 1}]}}, "is no formula"),
    "an operand unused": (9, {"options": {"formula": ["tanh", "x"]}}, "a formula without y"),
    "two letters": (9, {"options": {"formula": "xy"}}, "the argument 'xy'"),
    "a letter too many": (9, {"options": {"formula": ["add", "x", "z"]}}, "the argument 'z'"),
    "infinity": (9, {"options": {"formula": ["add", "x", 1e999]}}, "expected a finite number"),
    "an argument too few": (9, {"options": {"formula": ["add", "x"]}}, "with 1 arguments"),
    "an unknown kind": (9, {"kind": "eval"}, "which is not known"),
    "an unknown input": (9, {"inputs": ["s8", "nobody"]}, "takes nobody, which is not there"),
    "a name twice": (9, {"out": "s8"}, "is there twice"),
    "a name that is no text": (9, {"out": ["y"]}, "is no name"),
    "another shape": (9, {"shape": [3]}, "its inputs give \\(2,\\)"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_step_is_named(case: str, tmp_path: Path) -> None:
    place, change, said = CASES[case]
    note = copy.deepcopy(NOTE)
    note["graph"]["steps"][place] |= change
    with pytest.raises(ValueError, match=rf"policy\.json is damaged: .*{said}"):
        load_policy(written(tmp_path, note))


def test_a_formula_of_many_parts_is_refused(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(60):
        deep = ["neg", deep]
    wide: Any = "x"
    for _ in range(12):
        wide = ["add", wide, wide]
    for formula, said in ((deep, "nested more than 50 deep"), (wide, "expected 1000 at most")):
        note = copy.deepcopy(NOTE)
        note["graph"]["steps"][9]["options"] = {"formula": formula}
        with pytest.raises(ValueError, match=said):
            load_policy(written(tmp_path, note))


def test_work_has_a_limit_too(tmp_path: Path) -> None:
    """Two million numbers, and two billion operations."""
    note, n = copy.deepcopy(NOTE), 1000
    note["graph"]["steps"][2:] = [
        step("expand", ["s1"], "s2", [3, n]),
        step("permute", ["s2"], "s3", [n, 3], axes=[-1, -2]),
        step("matmul", ["s3", "s2"], "s4", [n, n]),
        step("matmul", ["s4", "s4"], "s5", [n, n]),
        step("take", ["x"], "y", [2], axis=-1, indices=[0, 1]),
    ]
    begun = time.process_time()
    with pytest.raises(ValueError, match=r"step 's5': .* exceed the limit of 10,000,000"):
        load_policy(written(tmp_path, note))
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"inputs": [["a", "m"]]}, r"inputs of the sizes \[4\]; expected \[1\]"),
        ({"outputs": [["u", "N"]]}, "expected"),
        ({"outputs": [["u", 5], ["v", "N"]]}, "is no text"),
        ({"graph": []}, "it has no network"),
        ({"graph": {**NOTE["graph"], "outputs": ["c"]}}, "is a constant"),
        ({"graph": {**NOTE["graph"], "outputs": []}}, "it has no outputs"),
        ({"graph": {**NOTE["graph"], "inputs": [["x", 10**12]]}}, "whole numbers from 1 on"),
    ],
)
def test_sizes_fit_each_other(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"policy\.json is damaged: .*{said}"):
        load_policy(written(tmp_path, NOTE | change))


def test_tables_beside_the_graph_fit_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="offset and scale of the sizes"):
        load_policy(written(tmp_path, NOTE, **{"action.scale": torch.ones(3)}))
    with pytest.raises(ValueError, match="memory of the sizes"):
        load_policy(written(tmp_path, NOTE, memory=torch.ones(3)))
    observed = {"observation.matrix": torch.ones(6, 5), "observation.offset": torch.ones(4)}
    with pytest.raises(ValueError, match="observations of the shapes"):
        load_policy(written(tmp_path, NOTE, **observed))


def test_every_operation_says_how_many_arguments_it_has() -> None:
    """The rules count them in the expression in C."""
    for name, (function, _, expression) in OPERATIONS.items():
        given = [np.array(0.5)] * expression.count("{}")
        assert np.ndim(function(*given)) == 0, name


def test_numbers_that_are_not_finite_are_words_of_c(tmp_path: Path) -> None:
    weights = torch.tensor([np.inf, -np.inf])
    controller = load_policy(written(tmp_path, NOTE, **{"network.c": weights, "network.k": weights * np.nan}))
    text = write_c_header(controller.network, tmp_path / "policy.h").read_text()
    assert "INFINITY, -INFINITY" in text and "NAN, NAN" in text
