"""Kernels against the limits of one core: operations per second against its peak and its memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any

from benchmarks.measure.table import Table

BATCH = 4096
ROUNDS = 9
Clock = Callable[[], float]


@dataclass(frozen=True)
class Point:
    """One kernel."""

    kernel: str
    operations: int
    """Operations per sample; a fused multiply-add is one."""
    bytes: int
    """Bytes of inputs and outputs per sample."""
    nanoseconds: float
    """Time per sample [ns]."""
    peak: float
    """Operations per second of one core."""
    bandwidth: float
    """Bytes per second that one core copies, read and written."""

    @property
    def rate(self) -> float:
        """Operations per second."""
        return 1e9 * self.operations / self.nanoseconds

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.operations / self.bytes

    @property
    def roof(self) -> float:
        """Operations per second that peak and memory allow."""
        return min(self.peak, self.intensity * self.bandwidth)


def measure(say: Callable[[str], None], processor_time: bool = False) -> list[dict[str, Any]]:
    """All kernels, float64, one thread."""
    from costate.kernel.report import peak_rate

    clock = time.thread_time if processor_time else time.perf_counter
    points, peak, bandwidth = [], 0.0, 0.0
    for name, make in _kernels():
        say(f"roofline: {name}")
        kernel = make()
        seconds = _seconds(kernel, clock)
        peak_rate.cache_clear()  # a busy or hot machine has bad moments: the best one counts, as for kernels
        peak, bandwidth = max(peak, peak_rate("f64") / 2), max(bandwidth, _bandwidth(clock))
        sizes = [_count(s.shape) for s in (*kernel.signature.inputs, *kernel.signature.outputs)]
        points.append(Point(name, kernel.code("f64").artifact.work, 8 * sum(sizes), 1e9 * seconds / BATCH, 0.0, 0.0))
    return [asdict(replace(p, peak=peak, bandwidth=bandwidth)) for p in points]


def _kernels() -> Iterator[tuple[str, Callable[[], Any]]]:
    functions = ("forward_kinematics", "inverse_dynamics", "mass_matrix", "forward_dynamics")
    for robot in ("ur5", "laikago"):
        for function in functions:
            title = f"{robot}: {function.replace('_', ' ')}"
            yield title, partial(_function, robot, function, False)
            if function.endswith("dynamics"):
                yield f"{title}, its VJP", partial(_function, robot, function, True)


def _function(robot: str, function: str, vjp: bool) -> Any:
    from costate.robot import load_robot

    kernel = load_robot(robot).kernel(function)
    return kernel.vjp() if vjp else kernel


def _seconds(kernel: Any, clock: Clock) -> float:
    """Measure a call with a batch of random inputs, on one thread [s]."""
    import torch

    random = torch.Generator().manual_seed(0)
    inputs = [torch.rand(BATCH, *s.shape, dtype=torch.float64, generator=random) for s in kernel.signature.inputs]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _best(lambda: kernel.run(inputs), clock)
    finally:
        torch.set_num_threads(threads)


def _bandwidth(clock: Clock) -> float:
    import torch

    source, target = _buffers()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return 2 * 8 * source.numel() / _best(lambda: target.copy_(source), clock, 30)
    finally:
        torch.set_num_threads(threads)


@cache
def _buffers() -> tuple[Any, Any]:
    """Buffers as large together as the inputs and outputs of a batch of UR5 kinematics, which caches hold."""
    import torch

    return torch.ones(1 << 18, dtype=torch.float64), torch.zeros(1 << 18, dtype=torch.float64)


def _best(run: Callable[[], Any], clock: Clock, rounds: int = ROUNDS) -> float:
    run()
    best = float("inf")
    for _ in range(rounds):
        start = clock()
        run()
        best = min(best, clock() - start)
    return best


def _count(shape: tuple[int, ...]) -> int:
    n = 1
    for k in shape:
        n *= k
    return n


def table(points: list[dict[str, Any]]) -> Table:
    rows = []
    for p in (Point(**p) for p in points):
        shares = 100 * p.rate / p.peak, 100 * p.rate / p.roof
        rows.append((p.kernel, p.operations, p.intensity, p.nanoseconds, p.rate / 1e9, *shares))
    peak = max((p["peak"] for p in points), default=0.0) / 1e9
    bandwidth = max((p["bandwidth"] for p in points), default=0.0) / 1e9
    note = (
        f"One thread, float64, batch {BATCH}, called from torch. Operations per sample: a fused multiply-add is one, a "
        "sine is one. Peak: a loop of nothing but fused multiply-adds, measured in "
        f"turns with the kernels, {peak:.1f} G operations per second (twice as many flops). Roof: the peak, or what "
        "memory allows at that many operations per byte of inputs and outputs; one core copies "
        f"{bandwidth:.1f} GB/s, read and written, between buffers of 2 MB. Steps with contact are left out: "
        "how often their loops run depends on the motion."
    )
    columns = ("kernel", "operations", "per byte", "ns per sample", "G operations/s", "% of peak", "% of roof")
    return Table("Roofline", columns, tuple(rows), note)
