"""Checks an MJCF file before MuJoCo's reader sees it, which waits for FIFOs and makes room for whatever a file asks for."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from costate.core.limits import excess
from costate.core.reach import is_network, problem, tree_of
from costate.model.document import MAX_BYTES, Node
from costate.model.errors import ModelError

_COPIES = ("replicate", "composite", "flexcomp")
"""Elements that stand for as many as the product of the numbers of their count."""
_BYTES = {
    "hfield": (4, ("nrow", "ncol")),
    "texture": (3, ("width", "height")),
    "numeric": (8, ("size",)),
    "user": (8, ("dim",)),
}
"""Bytes per number and the attributes whose product is the count of numbers, by element."""
_ROWS = ("njmax", "nconmax", "nkey", "nuser_")
"""Starts of the attributes of <size> that count rows."""
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50, "e": 2**60}
_FOLDERS = ("meshdir", "texturedir", "assetdir")
_MB = 2**20


@dataclass(frozen=True)
class Content:
    """The documents of an MJCF file, and the size of the files that they name."""

    roots: tuple[Any, ...]
    """Root elements of the file and of those that it includes."""
    asset_bytes: int

    @property
    def count(self) -> int:
        """Number of elements."""
        return sum(1 for root in self.roots for _ in root.iter(etree.Element))


def check_mjcf(root: Node, path: Path) -> Content:
    """Return what an MJCF file and those that it includes have in them.

    Raises a ModelError if they ask for too much, or name files that a robot file may not lead to.
    """
    documents = list(_documents(root, path))
    folders, named = {path.parent}, set()
    for node, _ in documents:
        folders.add(Path(node.file).parent)
        for element in node.element.iter("compiler"):
            named |= {_folder(Node(element, node.file), name, path) for name in _FOLDERS if element.get(name)}
    _bound(root, "mjcf_folders", len(folders | named))
    roots, files = (tree_of(path), *named), {}
    for node, times in documents:
        made = times * _elements(node.element) - sum(1 for _ in node.element.iter())
        _bound(node, "mjcf_copies", made)
        for element in node.element.iter(etree.Element):
            _check_size(Node(element, node.file))
            files |= _check_files(Node(element, node.file), folders | named, roots)
    return Content(tuple(node.element for node, _ in documents), sum(files.values()))


def _folder(node: Node, name: str, path: Path) -> Path:
    """Return a folder of meshes or textures, which may be anywhere on this machine."""
    given = node.element.get(name)
    if is_network(given):
        node.fail(f'{name}="{given[:60]}" is a network path; copy the files and give the path of their folder')
    return path.parent / given


def _documents(root: Node, path: Path) -> Iterator[tuple[Node, float]]:
    """Yield the root elements of a file and of all that it includes, and how often each is copied where it is included."""
    found, waiting, tree = {path.resolve()}, [(root, 1.0)], tree_of(path)
    while waiting:
        node, times = waiting.pop()
        yield node, times
        for element in node.element.iter("include", "model"):
            for folder in dict.fromkeys((path.parent, Path(node.file).parent)):
                file = folder / element.get("file", "")
                if not element.get("file") or not os.path.exists(file) or file.resolve() in found:
                    continue
                found.add(file.resolve())
                _bound(Node(element, node.file), "mjcf_files", len(found))
                included = _included(Node(element, node.file), file, tree)
                if included is not None:
                    copies = math.prod(_product(e, "count") for e in element.iterancestors(*_COPIES))
                    waiting.append((Node(included, str(file)), times * copies))


def _included(node: Node, file: Path, tree: Path) -> Any:
    """Return the root element of an included file as far as it can be read; MuJoCo says what is wrong with it."""
    if wrong := problem(file, [tree]):
        node.fail(f"names {str(file)[-60:]!r}, which {wrong}")
    if file.stat().st_size > MAX_BYTES:
        node.fail(f"names a file of {file.stat().st_size / _MB:.0f} MB; robot files have {MAX_BYTES // _MB} MB at most")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True)
    try:
        return etree.fromstring(file.read_bytes(), parser)
    except (etree.XMLSyntaxError, ValueError, OSError):
        return None


def _elements(element: Any) -> float:
    """Return the number of elements that one stands for, itself and all inside, after copying."""
    total = {}
    for e in reversed(list(element.iter())):  # what is inside comes first
        inside = 1.0 + sum(total[child] for child in e)
        total[e] = inside * (_product(e, "count") if e.tag in _COPIES else 1.0)
    return total[element]


def _product(element: Any, attribute: str) -> float:
    return math.prod(max(1.0, n) for n in numbers(element.get(attribute, "")))


def numbers(text: str) -> list[float]:
    """Return the numbers in a text; what is none is left for MuJoCo to refuse."""
    found = []
    for word in text.split()[:10]:
        try:
            found.append(float(word))
        except ValueError:
            continue
    return [n for n in found if not math.isnan(n)]


def _check_size(node: Node) -> None:
    element = node.element
    if node.tag in _BYTES and "file" not in element.attrib:
        each, attributes = _BYTES[node.tag]
        _bound(node, "mjcf_asset_mb", each * math.prod(_product(element, a) for a in attributes) / _MB)
    if node.tag == "mesh" and "builtin" in element.attrib:
        largest = max([0.0, *numbers(element.get("params", ""))])
        _bound(node, "mjcf_asset_mb", 24 * largest * largest / _MB)
    if node.tag == "size":
        _bound(node, "mjcf_memory_mb", _product(element, "nstack") * 8 / _MB)
        if given := re.match(r"\s*(\d{1,18})([kmgtpe]?)", element.get("memory", "").lower()):
            _bound(node, "mjcf_memory_mb", int(given[1]) * _UNITS[given[2]] / _MB)
        for name in (a for a in element.attrib if a.startswith(_ROWS)):
            _bound(node, "mjcf_rows", _product(element, name))


def _check_files(node: Node, folders: set[Path], roots: Collection[Path]) -> dict[Path, int]:
    """Return the files that an element may name, with their sizes as they are unpacked [bytes]."""
    found = {}
    for name, file in node.element.attrib.items():
        if not name.startswith("file") or not file:
            continue
        if is_network(file):
            node.fail(f'{name}="{file[:60]}" is a network path; copy the file and give its path')
        for place in {folder / part for folder in folders for part in (file, Path(file).name)}:
            if not os.path.exists(place) or os.path.isdir(place):  # False, and no error, for names that are too long
                continue
            if wrong := problem(place, roots):
                node.fail(f'{name}="{file[:60]}" {wrong}')
            found[place.resolve()] = max(place.stat().st_size, _picture_bytes(place))
            _bound(node, "mjcf_asset_mb", found[place.resolve()] / _MB)
    return found


def _picture_bytes(path: Path) -> int:
    """Return the bytes that a PNG unpacks to, by its header; 0 for any other file."""
    try:
        with path.open("rb") as file:
            start = file.read(24)
    except OSError:
        return 0
    if not start.startswith(b"\x89PNG\r\n\x1a\n"):
        return 0
    return 3 * int.from_bytes(start[16:20], "big") * int.from_bytes(start[20:24], "big")


def _bound(node: Node, name: str, asked: float) -> None:
    if problem := excess(name, asked):
        raise ModelError(f"{node.file}:{node.line}: {node.describe()}: {problem}")
