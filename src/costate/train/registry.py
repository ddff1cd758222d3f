"""The register of trainable tasks: the built-in ones by name, and those in files of a user's own."""

from __future__ import annotations

import inspect
import sys
from difflib import get_close_matches
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from costate.core.readers.text import shown
from costate.train.names import TASKS
from costate.train.trainable import Trainable


def find_task(name: str | Path, beside: str | None = None) -> type[Trainable]:
    """Return the class of a task: by its name, by the file it is in, or as FILE:CLASS if that has several.

    beside: another folder in which the file may import modules.
    """
    file, _, wanted = str(name).partition(".py:")
    if wanted or str(name).endswith(".py"):
        return _in_file(Path(f"{file}.py") if wanted else Path(name), wanted, beside)
    return registered_task(str(name), ", or a file of your own: my_task.py")


def registered_task(name: str, other: str = "") -> type[Trainable]:
    """Return the class of a built-in task by its name alone: names in files of unknown origin lead nowhere else.

    other: what else could have been named, for the error.
    """
    if name in TASKS:
        return loaded(TASKS[name].target)
    near = get_close_matches(name, TASKS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the tasks are {', '.join(TASKS)}{other}"
    raise ValueError(f"unknown task {shown(name)}; {hint}")


def loaded(target: Any) -> Any:
    """Return what "module:name" stands for; anything that is not text is returned as it is."""
    if not isinstance(target, str):
        return target
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def source_of(task: type[Trainable]) -> Path | None:
    """Return the file of a task that is not a built-in one; None if it is, or was never in a file."""
    if task.__module__.startswith("costate."):
        return None
    try:
        return Path(inspect.getfile(task))
    except (OSError, TypeError):
        return None


def _in_file(path: Path, wanted: str, beside: str | None) -> type[Trainable]:
    module = _module(path, beside)
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Trainable) and value.__module__ == module.__name__
    ]
    usable = [c for c in found if not inspect.isabstract(c) and (not wanted or c.__name__ == wanted)]
    if len(usable) == 1:
        return usable[0]
    if not usable:
        lacking = [
            f"{c.__name__} lacks {', '.join(sorted(c.__abstractmethods__))}" for c in found if inspect.isabstract(c)
        ]
        raise ValueError(
            f"{path} has no class that extends costate.train.trainable.Trainable; {'; '.join(lacking)}".rstrip("; ")
        )
    raise ValueError(f"{path} has several tasks: name one, {' or '.join(f'{path}:{c.__name__}' for c in usable)}")


def _module(path: Path, beside: str | None) -> ModuleType:
    """Return the module of a file; a file is loaded once."""
    if not path.is_file():
        raise ValueError(f"{path} is not a file; name a task ({', '.join(TASKS)}) or the file of your own")
    path = path.resolve()
    name = f"costate_task_{path.stem}_{abs(hash(str(path))):x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    folders = [str(path.parent), *([beside] if beside else [])]
    sys.path += folders  # for files beside it
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        for folder in folders:
            sys.path.remove(folder)
    return module
