"""The cost of films: processor time of one frame, drawn and written, and how the pictures differ from those of another checkout.

python -m benchmarks.bench_film
python -m benchmarks.bench_film --keep /tmp/before       # with one checkout: keeps a picture of each scene
python -m benchmarks.bench_film --compare /tmp/before    # with another one: mean difference of the bytes
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import costate as cs

SIZE = (960, 540)
Film = tuple[Any, torch.Tensor, dict[str, Any]]
"""Source, states, and options of `cs.render`."""


def one_arm() -> Film:
    return _swaying("ur5", 1, {})


def arm_with_marks() -> Film:
    robot, q, _ = _swaying("ur5", 1, {})
    way = q.clone().requires_grad_()
    (g,) = torch.autograd.grad(robot.forward_kinematics(way, "tool0").position.square().sum(), way)
    return robot, q, {"trails": ["tool0"], "gradient": g}


def nine_dogs() -> Film:
    return _swaying("laikago", 9, {"samples": 9})


SCENES: dict[str, Callable[[], Film]] = {
    "one UR5": one_arm,
    "one UR5, its trail and a gradient": arm_with_marks,
    "nine Laikagos": nine_dogs,
}


def _swaying(name: str, samples: int, options: dict[str, Any]) -> Film:
    """Move the joints of a robot to and fro."""
    robot = cs.load_robot(name).double()
    t = torch.linspace(0, 2, 60, dtype=torch.float64)[:, None, None]
    phase = torch.arange(samples, dtype=torch.float64)[:, None]
    q = torch.as_tensor(robot.model.home, dtype=torch.float64).expand(60, samples, -1).clone()
    joints = slice(7 if robot.nq > robot.nv else 0, None)
    q[..., joints] += 0.3 * torch.sin(3 * t + phase)
    return robot, q if samples > 1 else q[:, 0], options | {"dt": 1 / 30}


def processor_seconds() -> float:
    """Return the processor time of this process and of those it has ended, such as ffmpeg's."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def cost(film: Film, path: Path, frames: int) -> tuple[float, float]:
    """Return processor time and time of each frame of a film [s]."""
    source, states, options = film
    cs.render(source, states[:2], path, size=SIZE, **_first(options, 2))  # compile
    begun, used = time.perf_counter(), processor_seconds()
    cs.render(source, states[:frames], path, size=SIZE, **_first(options, frames))
    return (processor_seconds() - used) / frames, (time.perf_counter() - begun) / frames


def _first(options: dict[str, Any], frames: int) -> dict[str, Any]:
    return {k: v[:frames] if isinstance(v, torch.Tensor) else v for k, v in options.items()}


def still(film: Film, path: Path) -> np.ndarray:
    source, states, options = film
    cs.render(source, states, path, size=SIZE, frame=30, **options)
    return np.asarray(Image.open(path).convert("RGB")).astype(float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=30)
    parser.add_argument("--smoke", action="store_true", help="two frames of each film")
    parser.add_argument("--format", default="mp4", help="mp4, gif, ...")
    parser.add_argument("--keep", type=Path, help="folder in which a picture of each scene is kept")
    parser.add_argument("--compare", type=Path, help="folder of --keep, whose pictures these are compared with")
    options = parser.parse_args()
    frames = 2 if options.smoke else options.frames
    head = "processor s/frame  s/frame"
    print(f"{SIZE[0]} x {SIZE[1]}, {options.format}".ljust(36), head, " mean difference" * bool(options.compare))
    with tempfile.TemporaryDirectory() as folder:
        for name, make in SCENES.items():
            film = make()
            used, passed = cost(film, Path(folder) / f"film.{options.format}", frames)
            line = f"{name:36s} {used:17.4f}  {passed:7.4f}"
            file = f"{name.replace(' ', '_').replace(',', '')}.png"
            picture = still(film, (options.keep or Path(folder)) / file)
            if options.compare:
                before = np.asarray(Image.open(options.compare / file).convert("RGB")).astype(float)
                line += f"  {np.abs(picture - before).mean():15.3f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
