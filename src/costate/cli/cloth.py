"""`costate solve cloth_...`: problems of cloth, by a search or a policy, and their report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from costate.draw.recording import save_recording
from costate.report import Report
from costate.tasks.cloth.solve import solve_by_policy, solve_cloth

if TYPE_CHECKING:
    from costate.cli.solve import Options


def solve_cloth_task(options: Options, starts: int, tell: Callable[[str], None]) -> tuple[Report, str]:
    """Solve some problems; return the page, and what to say of it."""
    if options.single:
        raise ValueError("--single is given, but contact of cloth needs float64: leave it out")
    if options.policy and options.method is not None:
        raise ValueError(f"--method is {options.method!r}, but a policy is trained by Adam: leave it or --policy out")
    numbers, folder = range(options.first, options.first + starts), options.out / options.task
    if options.policy:
        page, text, motion = solve_by_policy(options.task, numbers, tell, folder, options.iterations)
        text += f"\n{folder}: the policy, for costate.load_policy"
    else:
        changes = {"method": options.method, "iterations": options.iterations}
        page, text, motion = solve_cloth(options.task, numbers, tell, **changes)
    save_recording(motion, folder)
    return page, f"{text}\n{folder}: look at it with costate view, make a film of it with costate render"
