"""Exports: policies as files that other systems run.

write_onnx(policy, "policy.onnx")           # any module of usual layers, or the network of a task: `Trainable.exported`
write_c_header(policy, "costate_policy.h")
"""

from __future__ import annotations

from typing import Any

from costate.export.c_header import write_c_header
from costate.export.onnx_file import onnx_difference, write_onnx
from costate.export.policy import as_network
from costate.train.network import Network

__all__ = ["Network", "as_network", "network_of", "onnx_difference", "write_c_header", "write_onnx"]


def network_of(policy: Any, task: Any) -> Network:
    """Return the exported network of a task's policy."""
    return task.exported(policy)
