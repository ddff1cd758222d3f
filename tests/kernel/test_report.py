"""A look inside: what a kernel costs, and its code as text."""

from __future__ import annotations

import casadi as ca
import pytest
from tests.kernel import programs

from costate.kernel import Kernel
from costate.kernel.machine.target import host
from costate.kernel.report import peak_rate


@pytest.fixture(scope="module")
def polynomial() -> Kernel:
    """Horner's scheme: 40 fused multiply-adds on each of 8 numbers, so 320 operations and 640 flops."""
    x = ca.SX.sym("x", 8)
    y = x
    for k in range(40):
        y = y * x + (k + 0.5)
    return Kernel("polynomial", {"x": x}, {"y": y})


def test_report_counts(polynomial: Kernel) -> None:
    report = polynomial.report(batch=2048)
    assert (report.ops, report.flops) == (320, 640)
    assert report.lanes == host().lanes("f64")
    assert polynomial.report("f32", batch=256).lanes == 2 * report.lanes
    assert report.workspace == polynomial.code().workspace_bytes
    assert report.code > 320 * 4  # at least four bytes per instruction
    assert report.compile_seconds > 0


def test_report_rates_are_possible(polynomial: Kernel) -> None:
    """Time, rate and peak belong together, and no kernel is faster than the machine."""
    # Both are measured on a machine that others use too, one after the other: the least of some ratios counts.
    reports = []
    for _ in range(8):
        peak_rate.cache_clear()
        reports.append(polynomial.report(batch=2048))
    report = min(reports, key=lambda r: r.efficiency)
    assert report.rate == pytest.approx(640 / (report.nanoseconds * 1e-9))
    assert report.peak > 1e8
    assert 0 < report.efficiency < 1.2
    text = str(report)
    for part in ("kernel polynomial (f64", "320 (640 flops)", "KiB per thread", "ns per sample", "% of the"):
        assert part in text


def test_code_as_text(polynomial: Kernel) -> None:
    llvm = polynomial.llvm()
    assert llvm.count(f"@llvm.fma.v{host().lanes('f64')}f64(") >= 320
    assert "define void @entry" in llvm
    assert "fast" not in llvm  # no fast-math flags
    assert "entry" in polynomial.assembly("f32")
    assert "float" in polynomial.llvm("f32")


def test_report_of_a_program_with_loops() -> None:
    report = programs.every_kind().report(batch=64)
    assert report.ops > 50
    assert report.workspace > 0
