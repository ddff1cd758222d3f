"""What importing costs: nothing at the top, and every module stands on its own."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from importlib.util import find_spec
from pathlib import Path

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


def test_modules_import_in_any_order() -> None:
    """No module relies on another one of ours having been imported first: what they import when they are loaded forms no circle.

    To try each in an interpreter of its own would take minutes.
    """
    circles = in_circles({name: imported_by(name) for name in MODULES})
    assert not circles, f"these modules import each other when they are loaded: {', '.join(sorted(circles))}"


def imported_by(module: str) -> set[str]:
    """Return what a module of ours imports of ours when it is loaded, with the packages that are loaded on the way there."""
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    found: set[str] = set()
    for node in at_top(ast.parse(Path(spec.origin).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    own = {".".join(module.split(".")[:k]) for k in range(1, module.count(".") + 2)}
    parts = [name.split(".") for name in found if name.partition(".")[0] == "costate"]
    return {".".join(p[:k]) for p in parts for k in range(1, len(p) + 1)} & {*MODULES} - own


def at_top(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that run when a module is loaded: none in functions, or for type checkers only."""
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def in_circles(imports: dict[str, set[str]]) -> set[str]:
    """Return the modules that are left when those which import nothing that is left are taken away, again and again."""
    left = dict(imports)
    while free := [name for name, needed in left.items() if not needed & left.keys()]:
        for name in free:
            del left[name]
    return set(left)


def test_circles_are_found() -> None:
    assert in_circles({"a": {"b"}, "b": {"c"}, "c": set()}) == set()
    assert in_circles({"a": {"b"}, "b": {"a"}, "c": {"d"}, "d": set()}) == {"a", "b"}


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


def distributions(requirements: Iterable[str]) -> set[str]:
    """Return the distributions that requirements name, and all that these need themselves; those of extras are left out."""
    found: set[str] = set()
    waiting = list(requirements)
    while waiting:
        name = _name(waiting.pop())
        if name in found:
            continue
        found.add(name)
        try:
            waiting += [r for r in requires(name) or () if "extra ==" not in r]
        except PackageNotFoundError:  # of another system or version of Python
            continue
    return found


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_the_core_dependencies_are_enough() -> None:
    """With every package hidden that the core dependencies do not bring, public names load; but for those that extend a class of
    another library, which say which extra they need."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    core = distributions(project["dependencies"])
    places = {m: {_name(d) for d in dists} for m, dists in packages_distributions().items() if m != "costate"}
    hidden = sorted(module for module, dists in places.items() if not dists & core)
    assert {"mujoco", "viser", "trimesh", "pyarrow", "gymnasium", "jax"} <= set(hidden) and "scipy" not in hidden
    program = f"""
import importlib, sys, costate
sys.modules.update(dict.fromkeys({hidden!r}))  # None: importing it fails
for name in {[*costate.__all__, *MODULES]!r}:
    try:
        importlib.import_module(name) if "." in name else getattr(costate, name)
    except ImportError as error:
        print(name, error, sep=": ")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    failed = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert {name for name in failed if "." not in name} == {"envs"}  # gymnasium is in the extra rl
    failed.pop("costate.train.shards.asha")  # extends Ray; loaded after `connect`, which names the extra
    assert {name: said for name, said in failed.items() if not re.search(r"install .*\[\w+\]", said)} == {}


def test_lazy_rows_are_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(costate._LAZY, "lazy_probe", "fractions:Fraction")
    from fractions import Fraction

    assert costate.lazy_probe is Fraction  # pyright: ignore[reportAttributeAccessIssue]
    assert costate.__dict__.pop("lazy_probe") is Fraction


def test_unknown_names_are_refused_by_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'warp_drive'"):
        costate.warp_drive  # pyright: ignore[reportAttributeAccessIssue] # noqa: B018
