"""Exports: trained policies as files that other systems run. `Trainable.exported` gives the network that is written."""

from __future__ import annotations

from typing import Any

from costate.export.c_header import write_c_header
from costate.export.onnx_file import onnx_difference, write_onnx
from costate.train.network import Network

__all__ = ["Network", "network_of", "onnx_difference", "write_c_header", "write_onnx"]


def network_of(policy: Any, task: Any) -> Network:
    """Return the exported network of a task's policy."""
    return task.exported(policy)
