"""Exports: trained policies as files that other systems run. They take raw measurements and give raw commands."""

from __future__ import annotations

from costate.export.c_header import write_c_header
from costate.export.network import Network, network_of
from costate.export.onnx_file import onnx_difference, write_onnx

__all__ = ["Network", "network_of", "onnx_difference", "write_c_header", "write_onnx"]
