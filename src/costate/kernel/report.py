"""A look inside a kernel: what it costs, how fast it runs, and the code itself."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import torch

from costate.kernel.codegen.driver import Layout
from costate.kernel.codegen.names import DTYPES
from costate.kernel.compile import jobs, lower_program, main_text
from costate.kernel.ir.program import Program
from costate.kernel.machine.jit import Library, module_text, object_code
from costate.kernel.machine.target import Target, host
from costate.kernel.machine.worker import job_text
from costate.kernel.machine.workers import make_job
from costate.kernel.passes.optimize import optimize

if TYPE_CHECKING:
    from costate.kernel.kernel import Kernel


BATCH = 4096
"""Samples that are measured, unless another number is given."""


@dataclass(frozen=True)
class Report:
    """The cost of a kernel."""

    name: str
    dtype: str
    lanes: int
    """Samples per vector; 0 for a kernel over fields, whose lanes are the entities of one sample."""
    ops: int
    """Operations in the code; a loop body counts once."""
    flops: int
    """Floating point operations in the code: a fused multiply-add counts two."""
    workspace: int
    """Bytes per thread."""
    code: int
    """Bytes of object code."""
    compile_seconds: float
    nanoseconds: float
    """Time of one sample on one thread [ns]."""
    rate: float
    """Floating point operations per second, one thread. For kernels over fields, and others without loops."""
    traffic: int
    """Bytes of the tensors that one sample reads and writes."""
    peak: float
    """Floating point operations per second that one core reaches with fused multiply-adds."""

    @property
    def efficiency(self) -> float:
        """Rate as a fraction of the peak."""
        return self.rate / self.peak

    def __str__(self) -> str:
        samples = f"{self.lanes} samples per vector" if self.lanes else "one sample, entities in the lanes"
        return (
            f"kernel {self.name} ({self.dtype}, {samples})\n"
            f"  operations     {self.ops:,} ({self.flops:,} flops)\n"
            f"  workspace      {self.workspace / 1024:.1f} KiB per thread\n"
            f"  code           {self.code / 1024:.1f} KiB, compiled in {self.compile_seconds:.2f} s\n"
            f"  tensors        {self.traffic / 1024:.1f} KiB per sample\n"
            f"  time           {self.nanoseconds:.1f} ns per sample, one thread\n"
            f"  rate           {self.rate / 1e9:.1f} Gflop/s, {100 * self.efficiency:.0f} % of the "
            f"{self.peak / 1e9:.1f} measured as peak"
        )


def report(kernel: Kernel, dtype: str, batch: int | None) -> Report:
    """Measure what a kernel costs on this machine."""
    code = kernel.code(dtype)
    over_fields = code.helper != 0
    batch = batch or (1 if over_fields else BATCH)
    kind = {"f64": torch.float64, "f32": torch.float32}[dtype]
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.rand(batch, *s.shape, dtype=kind, generator=generator) for s in kernel.signature.inputs]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds = _best(lambda: kernel.run(inputs)) / batch
    finally:
        torch.set_num_threads(threads)
    a = code.artifact
    done = a.flops * a.work / max(a.n_ops, 1) if over_fields else a.flops
    numbers = sum(s.size for s in (*kernel.signature.inputs, *kernel.signature.outputs))
    return Report(
        kernel.name,
        dtype,
        0 if over_fields else host().lanes(dtype),
        a.n_ops,
        a.flops,
        code.workspace_bytes,
        sum(map(len, a.images)),
        a.seconds,
        1e9 * seconds,
        done / seconds,
        numbers * DTYPES[dtype][1],
        peak_rate(dtype),
    )


def _best(run, repeats: int = 5, enough: float = 0.5) -> float:
    """Return the shortest time of some runs after a first one [s]; only one if that takes long [s]."""
    run()
    best = total = float("inf")
    for k in range(repeats):
        if k and total > enough:
            break
        start = time.perf_counter()
        run()
        took = time.perf_counter() - start
        best, total = min(best, took), (total if k else 0.0) + took
    return best


@cache
def peak_rate(dtype: str) -> float:
    """Measure the flops per second of one core in a loop of independent fused multiply-adds."""
    target = host()
    width, chains, rounds = target.lanes(dtype), 12, 200_000
    vec, suffix = f"<{width} x {DTYPES[dtype][0]}>", f"v{width}{dtype}"
    phis = "\n".join(f"  %a{k} = phi {vec} [zeroinitializer, %entry], [%b{k}, %body]" for k in range(chains))
    fmas = "\n".join(f"  %b{k} = call {vec} @llvm.fma.{suffix}({vec} %x, {vec} %x, {vec} %a{k})" for k in range(chains))
    sums = "\n".join(f"  %s{k + 1} = fadd {vec} %s{k}, %b{k}" for k in range(chains))
    text = f"""define void @peak(ptr %p) #0 {{
entry:
  %x = load {vec}, ptr %p, align 8
  br label %body
body:
{phis}
  %i = phi i64 [0, %entry], [%j, %body]
{fmas}
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, {rounds}
  br i1 %more, label %body, label %done
done:
  %s0 = fadd {vec} %x, %x
{sums}
  store {vec} %s{chains}, ptr %p, align 8
  ret void
}}
"""
    declare = {f"declare {vec} @llvm.fma.{suffix}({vec}, {vec}, {vec})"}
    library = Library([object_code(module_text(target, [text], declare, []), target)], ["peak"], {})
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("peak"))
    buffer = torch.zeros(64, dtype=torch.float64)
    return 2 * width * chains * rounds / _best(lambda: run(buffer.data_ptr()))


def listing(program: Program, layout: Layout, target: Target, dtype: str) -> list[str]:
    """Return the LLVM IR of a program's modules: the loops around it, then its chunks."""
    unit, _ = lower_program(optimize(program), layout, target, dtype)
    return [main_text(unit, target), *(job_text(make_job(chunks, target, dtype)) for _, chunks in jobs(unit))]
