"""Makes the pictures of the README, of the pages beside it and of the examples: python docs/pictures/make.py [NAME...]"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from PIL import Image

import costate as cs
from costate.draw.camera import Camera, framing
from costate.model import Transform
from costate.tasks.insertion import Insertion, InsertionOptions

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))  # for tests.browser
COLORS = 256
"""Of a palette: the pictures are few and small in a repository."""

GRADED = ("part", "particles", "16_printed_wall", "18_smoke")
"""Pictures with a scale of colours: their palettes cover all colours, not those of most pixels."""


def shrink(path: Path) -> None:
    image = Image.open(path).convert("RGB")
    method = Image.Quantize.MAXCOVERAGE if path.stem in GRADED else Image.Quantize.MEDIANCUT
    image.quantize(COLORS, method, dither=Image.Dither.NONE, kmeans=3).save(path, optimize=True)
    print(path.name, f"{path.stat().st_size / 1000:.0f} kB")


def robots() -> None:
    """All built-in robots of an ordinary size, in one world."""
    places = {
        "ur5": (0.0, -1.5),
        "panda": (-0.1, -0.55),
        "iiwa7": (0.0, 0.3),
        "laikago": (1.0, -0.5),
        "racecar": (0.75, 0.7),
        "ant": (-1.4, 1.5),
    }
    poses = {name: Transform(translation=np.array([x, y, 0.0])) for name, (x, y) in places.items()}
    world = cs.World(robots=[cs.load_robot(name) for name in places], poses=poses, contact=None, actuators=cs.Torque())
    camera = Camera(np.array([3.6, -2.7, 1.7]), np.array([0.0, -0.25, 0.36]), np.radians(27))
    path = cs.render(world, world.initial_state(), HERE / "robots.png", size=(900, 420), camera=camera)
    shrink(path)


def gradient() -> None:
    """An arm on its way, and where the distance of its tool to a target falls."""
    robot = cs.load_robot("ur5")
    t = torch.linspace(0, 1, 60, dtype=torch.float64)[:, None]
    sway = torch.tensor([1.3, -0.5, 0.6, 0.4, 0.0, 0.0], dtype=torch.float64)
    q = (torch.tensor(robot.model.home) + (t - 0.6) * sway).requires_grad_()
    target = torch.tensor([0.7, -0.5, 0.9], dtype=torch.float64)
    loss = (robot.forward_kinematics(q, "tool0").position - target).square().sum()
    (g,) = torch.autograd.grad(loss, q)
    camera = framing(np.array([-0.1, -0.15, 0.0]), np.array([0.55, 0.45, 0.62]), 1.6, azimuth=-40)
    path = cs.render(robot, q, HERE / "gradient.png", size=(640, 400), gradient=g, trails=["tool0"], camera=camera)
    shrink(path)


def insertion() -> None:
    """Four moments of an insertion, by a trained controller."""
    task = Insertion(InsertionOptions())
    policy = cs.load_policy(HERE.parent.parent / "tests" / "data" / "insertion")
    state = task.sample(1, torch.Generator().manual_seed(4), torch.float64)[0]
    states = [state]
    for step in range(task.options.horizon + task.options.hold):
        state = task.shown().step(state, policy.action(state, step))
        states.append(state)
    camera = Camera(np.array([1.35, -1.0, 0.62]), np.array([0.36, 0.06, 0.24]), np.radians(25))
    pictures = []
    for frame in (0, 12, 16, 40):
        path = cs.render(
            task.shown(), torch.stack(states), HERE / "insertion.png", size=(330, 400), camera=camera, frame=frame
        )
        pictures.append(np.asarray(Image.open(path).convert("RGB")))
    gap = np.full((400, 6, 3), 255, np.uint8)
    strip = np.concatenate([x for picture in pictures for x in (picture, gap)][:-1], 1)
    Image.fromarray(strip).save(HERE / "insertion.png")
    shrink(HERE / "insertion.png")


def pile() -> None:
    """Boxes of example 11 on their way, and at rest."""
    spec = spec_from_file_location("pile", HERE.parent.parent / "examples" / "11_pile.py")
    assert spec is not None and spec.loader is not None
    example = module_from_spec(spec)
    spec.loader.exec_module(example)
    world = example.make_world()
    states = example.simulate(world, example.scattered(world))
    camera = Camera(np.array([4.1, -3.3, 2.3]), np.array([0.33, 0.33, 0.5]), np.radians(28))
    pictures = []
    for frame in (0, 40, len(states) - 1):
        path = cs.render(world, states, HERE / "pile.png", size=(330, 330), camera=camera, frame=frame)
        pictures.append(np.asarray(Image.open(path).convert("RGB")))
    gap = np.full((330, 6, 3), 255, np.uint8)
    Image.fromarray(np.concatenate([x for p in pictures for x in (p, gap)][:-1], 1)).save(HERE / "pile.png")
    shrink(HERE / "pile.png")


def examples() -> None:
    """The pictures of the gallery in examples/README.md, as the examples write them, each in a process of its own."""
    root, folder = HERE.parent.parent, HERE / "examples"
    folder.mkdir(exist_ok=True)
    with TemporaryDirectory() as here:
        for example in sorted((root / "examples").glob("*.py")):
            subprocess.run([sys.executable, example], cwd=here, env=os.environ | {"MPLBACKEND": "Agg"}, check=True)
            written = Path(here) / "out" / f"{example.stem}.png"
            if written.is_file():
                image = Image.open(written)
                image.thumbnail((400, 400))
                image.save(folder / written.name)
                shrink(folder / written.name)


def screenshot(name: str, address: str, size: tuple[int, int], steps: Sequence[str] = ()) -> None:
    """Keep a picture of a page in headless Chromium. steps: expressions that are run one after the other before."""
    from tests.browser import Browser

    with Browser() as browser:
        page = browser.page(address, size)
        page.wait("!!document.querySelector('canvas')")
        time.sleep(8)
        for step in steps:
            page.js(step)
            time.sleep(3)
        image = Image.fromarray(page.screenshot(name))
    image.resize((800, round(800 * image.height / image.width)), Image.Resampling.LANCZOS).save(HERE / f"{name}.png")
    shrink(HERE / f"{name}.png")


def swaying() -> tuple[cs.World, torch.Tensor, torch.Tensor]:
    """Two arms that swing, and the gradient of a loss of their tools' positions by the states."""
    world = cs.World(robots=[cs.load_robot("ur5")], contact=None, dt=0.02).double()
    t = torch.linspace(0, 2, 100, dtype=torch.float64)[:, None, None]
    sway = torch.tensor([[0.9, 0.35, 0.5, 0.3, 0.0, 0.0], [-0.7, 0.5, 0.2, 0.4, 0.0, 0.0]], dtype=torch.float64)
    states = world.initial_state().expand(100, 2, -1).clone()
    states[..., :6] += sway * torch.sin(3 * t)
    states.requires_grad_()
    target = torch.tensor([0.7, -0.5, 0.9], dtype=torch.float64)
    loss = (cs.load_robot("ur5").forward_kinematics(states[..., :6], "tool0").position - target).square().sum()
    (g,) = torch.autograd.grad(loss, states)
    return world, states.detach(), g


def viewer() -> None:
    """The viewer with a motion of two arms."""
    from costate.viewer.player import Player

    world, states, g = swaying()
    page = cs.view(world, states, gradient=g, trails=["ur5/tool0"], energy=True, block=False, port=8390)
    assert isinstance(page.content, Player)
    page.content.show(0.9)
    close = "document.querySelectorAll('.mantine-Notification-closeButton').forEach((b) => b.click())"
    screenshot("viewer", page.url, (1200, 710), [close])
    page.close()


def report() -> None:
    """A replay in a report."""
    from costate.report import Report

    world, states, g = swaying()
    page = Report("Swaying", "two UR5, and where the distance of their tools to a target falls")
    page.replay(world, states, gradient=g, trails=["ur5/tool0"])
    path = page.save(Path(tempfile.mkdtemp()) / "report.html")
    screenshot("report", path.as_uri(), (1200, 770), ["costateReplays[0].seek(0.9)"])


def part() -> None:
    """The page of example 16."""
    with TemporaryDirectory() as here:
        example = HERE.parent.parent / "examples" / "16_printed_wall.py"
        subprocess.run([sys.executable, example], cwd=here, check=True)
        steps = ["costateReplays[0].playing = false; costateReplays[0].seek(6.5)"]
        screenshot("part", (Path(here) / "out" / "16_printed_wall.html").as_uri(), (1000, 690), steps)


def particles() -> None:
    """A column of 30,000 particles that is twisted, in a report."""
    from costate.report import Report

    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (30_000, 3)) * [0.15, 0.15, 0.25] + [0, 0, 0.25]
    times = np.arange(0, 3, 1 / 30)
    angle = 3 * times[:, None] * x[:, 2] / 0.5
    turned = [x[:, 0] * np.cos(angle) - x[:, 1] * np.sin(angle), x[:, 0] * np.sin(angle) + x[:, 1] * np.cos(angle)]
    page = Report("Particles", "a column that is twisted")
    page.particles(times, np.stack([*turned, x[:, 2] + 0 * angle], -1), x[:, 0], title="x at first", unit="m")
    path = page.save(Path(tempfile.mkdtemp()) / "particles.html")
    print(f"{path.stat().st_size / 1e6:.1f} MB")
    screenshot("particles", path.as_uri(), (1000, 640), ["costateReplays[0].seek(0.6)"])


def hands() -> None:
    """The report and the live page of example 19, which trains for minutes; and the motions of flip and wheel."""
    with TemporaryDirectory() as here:
        example = HERE.parent.parent / "examples" / "19_grasp.py"
        subprocess.run([sys.executable, example], cwd=here, check=True)
        hand_pages(Path(here) / "out" / "19_grasp")
    hand_motions()


def hand_pages(run: Path) -> None:
    """The pages of a run of a hand."""
    from threading import Thread

    from costate.report.run_report import run_report
    from costate.tasks.manipulation.show.play import HandPlay
    from costate.train.run import Run
    from costate.viewer.play import open_play

    path = run_report(Run.open(run), 64).save(run / "report.html")
    steps = ["costateReplays.forEach((r) => { r.playing = false; r.seek(0.22); })", "window.scrollTo(0, 330)"]
    screenshot("hands_report", path.as_uri(), (1200, 620), steps)
    page, play = open_play(HandPlay, Run.open(run), port=8392)
    Thread(target=play.live.run, daemon=True).start()
    close = "document.querySelectorAll('.mantine-Notification-closeButton').forEach((b) => b.click())"
    screenshot("hands_play", page.url, (1200, 710), [close])
    page.close()


def hand_motions() -> None:
    """Flip and wheel, as their training begins: four moments each."""
    from costate.tasks.manipulation.motions.flip import Flip
    from costate.tasks.manipulation.motions.wheel import Wheel
    from costate.train.evaluate import tried

    rows = []
    for kind, steps, moments in ((Flip, 100, (30, 50, 62, 99)), (Wheel, 330, (20, 80, 150, 220))):
        task = kind(replace(kind.options, steps=steps, scales=(1.0, 1.0), place=0.0))
        drawn = task.draw(1, torch.Generator().manual_seed(0), torch.float64)
        states = tried(task, task.policy(task.training), drawn).states[:, 0]
        eye, at = np.array(task.middle) + np.array([[0.3, -0.5, 0.25], [-0.02, 0.0, 0.04]])
        with TemporaryDirectory() as here:
            files = [Path(here) / f"{k}.png" for k in moments]
            for k, file in zip(moments, files, strict=True):
                cs.render(task.world, states, file, size=(260, 220), frame=k, camera=Camera(eye, at, 0.7))
            rows.append(np.concatenate([np.asarray(Image.open(file).convert("RGB")) for file in files], 1))
    Image.fromarray(np.concatenate(rows)).save(HERE / "hands_motions.png")
    shrink(HERE / "hands_motions.png")


CLOTH = {
    "cloth_hat": (40, 65),
    "cloth_thread": (25, 60),
    "cloth_fold": (35, 97),
    "cloth_hang": (35, 100),
    "cloth_stretch": (0, 70),
}
"""Task of cloth -> two moments of its motion."""


def cloth() -> None:
    """Tasks of cloth, solved: two moments of each, one below the other."""
    from costate.draw.recording import Recording
    from costate.draw.render import render_recording
    from costate.tasks.cloth.names import CLOTH_TASKS
    from costate.tasks.cloth.solve import recorded

    columns = []
    for name, moments in CLOTH.items():
        shown: Recording = recorded(CLOTH_TASKS[name].solve(0, print))
        points = np.concatenate([s.points.reshape(-1, 3) for s in shown.motion.surfaces])
        camera = framing(points.min(0) - 0.05, points.max(0) + 0.05, 1.0)
        with TemporaryDirectory() as here:
            files = [
                render_recording(shown, Path(here) / f"{k}.png", size=(220, 220), frame=k, camera=camera)
                for k in moments
            ]
            columns.append(np.concatenate([np.asarray(Image.open(file).convert("RGB")) for file in files]))
    Image.fromarray(np.concatenate(columns, 1)).save(HERE / "cloth.png")
    shrink(HERE / "cloth.png")


PICTURES = {
    "cloth": cloth,
    "robots": robots,
    "gradient": gradient,
    "insertion": insertion,
    "pile": pile,
    "examples": examples,
    "viewer": viewer,
    "report": report,
    "part": part,
    "particles": particles,
    "hands": hands,
}
"""Name -> what makes it. The last five need Chromium."""

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()
