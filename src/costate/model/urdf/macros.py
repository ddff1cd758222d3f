"""Expands xacro files, if the package xacro is installed."""

from __future__ import annotations

import importlib
from pathlib import Path

from costate.core.extras import needs
from costate.model.document import Node, parse, parse_bytes
from costate.model.errors import ModelError


def parse_urdf(path: Path) -> Node:
    """Return the root element of a URDF file, or of what a file named *.xacro expands to.

    Only the name decides: xacro evaluates the expressions of a file, and a .urdf file is data of which nothing is run.
    """
    root = parse(path)
    if path.suffix.lower() == ".xacro":
        return parse_bytes(_expanded(path), str(path))
    for node in root.children():
        if "xacro" in node.tag:
            raise ModelError(
                f"{path}:{node.line}: this is a xacro file; run xacro on it and load the result, or let its name end in .xacro "
                "to have it expanded"
            )
    return root


def _expanded(path: Path) -> bytes:
    try:
        xacro = importlib.import_module("xacro")
    except ImportError:
        raise ModelError(
            needs(f"{path}: expanding a xacro file", "the package xacro", "xacro")
            + ", or run xacro on the file elsewhere and load the result"
        ) from None
    try:
        return xacro.process_file(str(path)).toxml(encoding="utf-8")
    except Exception as error:  # whatever the expressions of the file raise
        raise ModelError(f"{path}: xacro cannot expand this file: {error or type(error).__name__}") from error
