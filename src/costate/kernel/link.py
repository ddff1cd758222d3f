"""Linking: from a recipe to callable code, through the cache or the compiler."""

from __future__ import annotations

from functools import cache

from costate.core.fork import COMPILING
from costate.kernel.calls.native import NativeCode
from costate.kernel.calls.team import yield_address
from costate.kernel.codegen.driver import Layout
from costate.kernel.codegen.unit import YIELD
from costate.kernel.compile import compile_program
from costate.kernel.machine import cache as disk
from costate.kernel.machine.artifact import Artifact
from costate.kernel.machine.jit import Library, math_symbols, math_text, object_code
from costate.kernel.machine.target import Target, host
from costate.kernel.recipe import Recipe


def native_code(recipe: Recipe, layout: Layout, dtype: str, target: Target | None = None) -> NativeCode:
    """Return the callable code of a recipe; compiled only if it is not on disk."""
    target = target or host()
    artifact = artifact_of(recipe, layout, dtype, target)
    with COMPILING:
        grids = recipe.grids()
    imports = {}
    for name in artifact.imports:
        if name in grids:
            imports[name] = grids[name].ctypes.data
        elif name == YIELD:
            imports[name] = yield_address()
        else:
            imports[name] = math_library(target, dtype).address(name)
    names = ["entry", "helper"] if artifact.helper_workspace else ["entry"]
    library = Library(list(artifact.images), names, imports, keep=grids)
    n_tensors = len(layout.inputs) + len(layout.outputs)
    return NativeCode(library.address("entry"), n_tensors, artifact.workspace, artifact, library)


def artifact_of(recipe: Recipe, layout: Layout, dtype: str, target: Target) -> Artifact:
    """Return the object code of a recipe, from disk or compiled now."""

    def compiled() -> Artifact:
        with COMPILING:
            program = recipe.build()
        return compile_program(program, layout, target, dtype)

    with COMPILING:
        key = recipe.key_with(())
    return disk.obtained(disk.entry_key(key, layout, dtype, target), compiled)


@cache
def math_library(target: Target, dtype: str) -> Library:
    """Return the vector functions, compiled once per CPU and number type and shared by all kernels."""
    key = disk.entry_key("vector functions", None, dtype, target)

    def compiled() -> Artifact:
        return Artifact((object_code(math_text(target, dtype), target),), 0, 0, 0, 0, 0, 0, 0.0, ())

    artifact = disk.obtained(key, compiled)
    return Library(list(artifact.images), math_symbols(target.lanes(dtype), dtype), {})
