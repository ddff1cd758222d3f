"""The floor plan: tests mirror the package, folders and functions stay small enough to read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE, TESTS = ROOT / "src" / "costate", ROOT / "tests"

MAX_FILES = 15
"""Largest number of Python files in a folder of the package; `__init__.py` and `__main__.py` are not counted."""
MAX_LINES = 60
"""Largest number of lines of a function, docstring included."""

LONGER = {
    "kernel/vecmath/trig.py: payne_hanek_ir": 82,  # LLVM IR of one algorithm, written out
    "viewer/view.py: view": 74,  # half of it documents its arguments
}
"""Functions that may be longer, and how long: this only ever gets shorter."""

TESTED_ELSEWHERE = {
    "cli/identification": "report/identification/test_robot.py",
    "cli/runs": "train/test_trainer.py",
    "collision/convex": "collision/test_pairs.py",
    "collision/formulas": "sim/scene/test_shapes.py",
    "collision/shapes": "collision/test_own_shape.py",
    "audit/smoothness": "audit/test_smoothness.py",
    "core/readers": "benchmarks/faults/test_inputs.py",
    "compat/differentiable_robot_model": "compat/test_same_calls.py",
    "kernel/codegen/stages": "kernel/ops/test_stages.py",
    "kernel/codegen/stages/fields": "kernel/ops/fields/test_for_each.py",
    "kernel/passes": "kernel/ir/test_derivatives.py",
    "model/actuation": "sim/forces/test_transmissions.py",
    "report/rewards": "train/reinforce/test_shac.py",
    "robot/params": "robot/test_learnable.py",
    "tasks/additive": "tasks/test_additive.py",
    "tasks/cloth": "tasks/test_cloth.py",
    "tasks/cloth/robots": "tasks/test_cloth_robots.py",
    "tasks/soft": "tasks/test_soft.py",
    "tasks/soft/plasticine": "tasks/test_soft_plasticine.py",
    "tasks/soft/robots": "tasks/test_soft_robots.py",
    "tasks/insertion": "tasks/test_insertion.py",
    "tasks/smoke": "tasks/test_smoke.py",
    "tasks/insertion/guidance": "tasks/test_insertion_guidance.py",
    "tasks/insertion/least_time": "tasks/test_insertion_least_time.py",
    "tasks/insertion/mujoco": "tasks/test_insertion_mujoco.py",
    "tasks/insertion/play": "tasks/test_insertion_play.py",
    "tasks/locomotion": "tasks/test_locomotion.py",
    "tasks/locomotion/v5": "tasks/test_locomotion_v5.py",
    "tasks/insertion/report": "tasks/test_insertion_report.py",
    "train/network/operations": "train/network/test_network.py",
    "train/solve": "tasks/test_solve.py",
}
"""Folder of the package without a folder of tests -> the tests that exercise it."""

SUBJECTS = {
    "against_mujoco": "the same quantity computed by MuJoCo",
    "against_pinocchio": "the same quantity computed by Pinocchio",
    "against_pybullet": "the same quantity computed by PyBullet",
    "continuity": "values that change no faster than what they depend on",
    "closed_forms": "problems with a solution on paper",
    "command": "a command as a user calls it",
    "derivatives": "derivatives against differences, and against each other",
    "errors": "what a mistake is answered with",
    "faults": "damaged files",
    "gradients": "gradients against differences",
    "identities": "laws that hold for every robot",
    "interface": "shapes, types and names of a class",
    "known_answers": "motions with a solution on paper",
    "own_actuator": "an actuator from outside the package",
    "own_shape": "a shape from outside the package",
    "same_bits": "results that depend on nothing but their inputs",
    "validation": "scenes with a known answer: `make study-contact` in short",
}
"""Tests that are named for a subject that several modules share."""

OWN = "own_"
"""Beginning of the names of tests that add a kind from outside, as a user would: test_own_actuator.py."""

OF_A_PACKAGE = {
    "audit": ("free_flight", "references", "gradcheck_command"),
    "cli": ("cli",),
    "continuum": ("references",),
    "compat": ("description", "learning_examples", "modules", "same_calls"),
    "export": ("network",),
    "identify": ("bad_data", "identify"),
    "kernel": ("rooms",),
    "model/mjcf": ("inertia",),
    "kernel/calls": ("batching",),
    "kernel/codegen": ("expressions", "ops"),
    "kernel/ir": ("programs",),
    "kernel/machine": ("processes",),
    "kernel/ops": ("dynamic_length", "stages"),
    "kernel/vecmath": ("vecmath",),
    "model/builtin": ("builtin",),
    "model/urdf": ("details", "large"),
    "report": ("insertion", "page"),
    "robot": ("learnable_gradients",),
    "sim": ("resting",),
    "sim/contact": ("own_model",),
    "sim/contact/newton": ("mjcf",),
    "sim/integrate": ("free_flight", "newton_integrators"),
    "tasks": ("solve",),
    "train": ("best",),
    "viewer": ("page", "speed"),
}
"""Folder -> tests of it as a whole, or of a property that no single module has."""


def folders(root: Path) -> Iterator[Path]:
    """Yield the folders below a root that hold Python files."""
    for path in sorted(p for p in root.rglob("*") if p.is_dir() and p.name != "__pycache__"):
        if any(path.glob("*.py")):
            yield path


def code(folder: Path) -> list[Path]:
    """Return the Python files of a folder without `__init__.py` and `__main__.py`."""
    return [path for path in folder.glob("*.py") if not path.name.startswith("__")]


def home(folder: Path) -> Path:
    """Return the folder that a folder of tests is about."""
    relative = folder.relative_to(TESTS)
    return (ROOT if relative.parts[0] == "benchmarks" else PACKAGE) / relative


def test_every_folder_of_tests_is_one_of_the_package_or_of_the_benchmarks() -> None:
    tests = [folder for folder in folders(TESTS) if folder.relative_to(TESTS).parts[0] != "data"]
    assert [str(folder) for folder in tests if not home(folder).is_dir()] == []


def test_every_folder_of_the_package_has_tests() -> None:
    names = [folder.relative_to(PACKAGE).as_posix() for folder in folders(PACKAGE) if code(folder)]
    untested = [name for name in names if not any((TESTS / name).glob("**/test_*.py"))]
    assert sorted(set(untested) - set(TESTED_ELSEWHERE)) == []
    assert [test for test in TESTED_ELSEWHERE.values() if not (TESTS / test).is_file()] == []


def test_every_test_is_named_for_a_module_or_a_subject() -> None:
    strangers = []
    for path in sorted(TESTS.glob("*/**/test_*.py")):
        folder, name = path.parent, path.stem.removeprefix("test_")
        own = OF_A_PACKAGE.get(folder.relative_to(TESTS).as_posix(), ())
        if not (name.startswith(OWN) or name in SUBJECTS or name in own or is_module(home(folder), name)):
            strangers.append(path.relative_to(TESTS).as_posix())
    assert strangers == []


def is_module(folder: Path, name: str) -> bool:
    """Tell whether a folder holds a module or a folder of a name, which may spell a path: insertion_bound, insertion/bound.py."""
    if (folder / f"{name}.py").is_file() or (folder / name).is_dir():
        return True
    words = name.split("_")
    splits = (("_".join(words[:k]), "_".join(words[k:])) for k in range(1, len(words)))
    return any((folder / first).is_dir() and is_module(folder / first, rest) for first, rest in splits)


def test_folders_are_small() -> None:
    sizes = {str(folder.relative_to(PACKAGE)): len(code(folder)) for folder in folders(PACKAGE)}
    assert {name: size for name, size in sizes.items() if size > MAX_FILES} == {}


def long_functions(source: str, limit: int) -> dict[str, int]:
    """Return the functions of a source text that have more lines than a limit, and how many they have."""
    functions = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    lines = {f.name: (f.end_lineno or f.lineno) - f.lineno + 1 for f in functions}
    return {name: count for name, count in lines.items() if count > limit}


def test_functions_are_short() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for name, lines in long_functions(path.read_text(), MAX_LINES).items():
            found[f"{path.relative_to(PACKAGE).as_posix()}: {name}"] = lines
    assert {name: lines for name, lines in found.items() if lines > LONGER.get(name, MAX_LINES)} == {}


@pytest.mark.parametrize(("lines", "found"), [(5, {}), (6, {"f": 6})])
def test_long_functions_are_found(lines: int, found: dict[str, int]) -> None:
    assert long_functions("def f():\n" + "    pass\n" * (lines - 1), 5) == found


def test_names_that_spell_a_path() -> None:
    assert (
        is_module(PACKAGE, "kernel_build")
        and is_module(PACKAGE / "kernel", "torch_op")
        and is_module(PACKAGE, "kernel")
    )
    assert not is_module(PACKAGE, "kernel_nothing")
