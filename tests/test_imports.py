"""What importing costs: nothing at the top, and every module stands on its own."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import costate

HEAVY = ("torch", "casadi", "llvmlite", "numpy", "matplotlib", "mujoco", "viser", "tyro", "rich")

LIMIT = 1200
"""Seconds after which a process counts as hanging, on a busy machine, too."""

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(costate.__path__, "costate.")
    if not module.name.endswith("__main__")  # importing that one runs it
)


def loaded_after(statement: str, packages: tuple[str, ...] = HEAVY) -> set[str]:
    """Which of the given packages a fresh interpreter has loaded after a statement."""
    program = f"import sys\n{statement}\nprint(*(set({packages!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_costate_loads_nothing_heavy() -> None:
    assert loaded_after("import costate") == set()


def test_compiler_worker_starts_without_torch_and_casadi() -> None:
    assert loaded_after("import costate.kernel.machine.worker") <= {"llvmlite", "numpy"}


def test_models_need_no_tensors() -> None:
    assert loaded_after("import costate.model", ("torch", "casadi", "llvmlite")) == set()


def test_every_module_imports_on_its_own() -> None:
    """No module relies on another one of ours having been imported first. One interpreter serves all: what is not ours stays."""
    program = f"""
import importlib, sys
failed = []
for module in {MODULES!r}:
    for name in [n for n in sys.modules if n.partition(".")[0] == "costate"]:
        del sys.modules[name]
    try:
        importlib.import_module(module)
    except Exception as error:
        failed.append(f"{{module}}: {{error!r}}")
print("\\n".join(failed))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert not done.stdout.strip(), done.stdout


@pytest.mark.parametrize("name", costate.__all__)
def test_public_names_resolve(name: str) -> None:
    assert getattr(costate, name) is not None
    assert name in dir(costate)


def test_functions_are_callable_whatever_was_imported_before() -> None:
    """`cs.identify` is a function, and `costate.identify` a package: importing the package must not hide the function."""
    functions = [name for name, target in costate._LAZY.items() if ":" in target]
    program = f"""
import importlib, costate
for module in {MODULES!r}:
    importlib.import_module(module)
print(*(name for name in {functions!r} if not callable(getattr(costate, name))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_lazy_rows_are_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(costate._LAZY, "lazy_probe", "fractions:Fraction")
    from fractions import Fraction

    assert costate.lazy_probe is Fraction  # pyright: ignore[reportAttributeAccessIssue]
    assert costate.__dict__.pop("lazy_probe") is Fraction


def test_unknown_names_are_refused_by_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'warp_drive'"):
        costate.warp_drive  # pyright: ignore[reportAttributeAccessIssue] # noqa: B018
