"""Pictures and films: files that open, of what they should show."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import costate as cs
from costate.draw.camera import Camera
from costate.draw.recording import record
from costate.draw.render import frames
from costate.model import Model, Shape, Transform
from costate.model.model import Link

SIZE = (160, 120)
ABOVE = Camera(np.array([0.0, -1e-3, 4.0]), np.zeros(3))
"""Looks straight down: x is to the right, y is up."""


def ball(at: tuple[float, float, float], radius: float = 0.3) -> Model:
    red = Shape("sphere", np.array([radius]), Transform(translation=np.array(at)), color=(0.9, 0.1, 0.1, 1.0))
    return Model("ball", (Link("world", visuals=(red,)),), ())


def pixels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB")).astype(int)


def red(image: np.ndarray) -> np.ndarray:
    return image[..., 0] > 2 * image[..., 1] + 20


def test_a_ball_is_where_it_is_and_as_large_as_it_is(tmp_path: Path) -> None:
    path = cs.render(ball((0.4, 0.2, 0.3)), torch.zeros(0), tmp_path / "ball.png", size=SIZE, camera=ABOVE)
    y, x = np.nonzero(red(pixels(path)))
    focal = SIZE[1] / 2 / np.tan(ABOVE.fov / 2)
    middle = SIZE[0] / 2 + focal * 0.4 / 3.7, SIZE[1] / 2 - focal * 0.2 / 3.7
    assert (x.mean() + 0.5, y.mean() + 0.5) == pytest.approx(middle, abs=1.0)
    assert len(x) == pytest.approx(np.pi * (focal * 0.3 / 3.7) ** 2, rel=0.06)


def over_a_floor(radius: float) -> Model:
    floor = Shape("plane", np.zeros(0))
    return Model("pair", (Link("world", visuals=(*ball((0, 0, 0.9), radius).links[0].visuals, floor)),), ())


def test_shadow_falls_away_from_the_sun(tmp_path: Path) -> None:
    shown = [
        pixels(cs.render(over_a_floor(r), torch.zeros(0), tmp_path / f"{r}.png", size=SIZE, camera=ABOVE))
        for r in (1e-3, 0.2)
    ]
    darker = (shown[0] - shown[1]).min(-1) > 20  # all three channels: not the ball itself, whose red is brighter
    y, x = np.nonzero(darker & ~red(shown[1]))
    # The sun is at (0.35, -0.45, 0.82): the shadow of a ball 0.9 m up falls at 0.9 * (-0.35, 0.45) / 0.82.
    focal = SIZE[1] / 2 / np.tan(ABOVE.fov / 2)
    assert len(x) > 100
    assert x.mean() == pytest.approx(SIZE[0] / 2 + focal * -0.384 / 4, abs=2)
    assert y.mean() == pytest.approx(SIZE[1] / 2 - focal * 0.494 / 4, abs=2)


def test_films_have_a_frame_per_time_and_move(tmp_path: Path) -> None:
    robot = cs.load_robot("pendulum1")
    q = torch.linspace(0, 1, 6, dtype=torch.float64)[:, None]
    path = cs.render(robot, q, tmp_path / "swing.gif", size=SIZE, fps=10, dt=0.1)
    film = Image.open(path)
    assert film.n_frames == 6  # pyright: ignore[reportAttributeAccessIssue]
    first = np.asarray(film.convert("RGB")).astype(int)
    film.seek(5)
    assert (np.abs(np.asarray(film.convert("RGB")) - first).max(-1) > 40).sum() > 30


def test_mp4(tmp_path: Path) -> None:
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    robot = cs.load_robot("pendulum1")
    q = torch.linspace(0, 1, 6, dtype=torch.float64)[:, None]
    path = cs.render(robot, q, tmp_path / "swing.mp4", size=SIZE, fps=10, dt=0.1)
    reader = imageio_ffmpeg.read_frames(str(path))
    about = next(reader)
    assert about["size"] == SIZE and about["fps"] == 10
    assert len(list(reader)) == 6


def test_the_same_states_give_the_same_picture(tmp_path: Path) -> None:
    robot = cs.load_robot("pendulum1")
    a, b = (cs.render(robot, torch.zeros(1), tmp_path / f"{k}.png", size=SIZE).read_bytes() for k in "ab")
    assert a == b


def test_samples_stand_side_by_side(tmp_path: Path) -> None:
    from costate.draw.poses import motion_of

    robot = cs.load_robot("ur5")
    motion = motion_of(robot, torch.tensor(robot.model.home).expand(1, 5, 6))
    assert motion.samples == 5 and len(np.unique(motion.offsets.round(6), axis=0)) == 5
    one = motion_of(robot, torch.tensor(robot.model.home))
    width = (one.bounds[1] - one.bounds[0])[:2]
    apart = np.abs(motion.offsets[:, None, :2] - motion.offsets[None, :, :2])
    clear = (apart > width).any(-1) | np.eye(5, dtype=bool)
    assert clear.all()
    assert motion_of(robot, torch.zeros(1, 5, 6), samples=[3, 1]).chosen == (3, 1)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a.tiff", {}, "ends in .png"),
        ("a.png", {"theme": "sepia"}, "unknown theme 'sepia'"),
        ("a.png", {"trails": ["nose"]}, "no link 'nose'"),
        ("a.png", {"contacts": True}, "for worlds"),
        ("a.png", {"samples": [7]}, "the batch has 1"),
    ],
)
def test_mistakes_are_said(name: str, options: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        cs.render(cs.load_robot("pendulum1"), torch.zeros(1), tmp_path / name, size=SIZE, **options)


def test_films_without_ffmpeg_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ImportError, match=r"imageio-ffmpeg: .*\[view\].*\.gif"):
        cs.render(cs.load_robot("pendulum1"), torch.zeros(1), tmp_path / "a.mp4", size=SIZE)


def swinging(count: int = 12) -> torch.Tensor:
    return torch.linspace(0, 1, count, dtype=torch.float64)[:, None]


def test_threads_draw_the_same_frames_in_order() -> None:
    recording = record(cs.load_robot("pendulum1"), swinging(), trails=[cs.load_robot("pendulum1").model.links[-1].name])
    chosen = [0, 0, 3, 5, 5, 5, 9, 11, 2]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = list(frames(recording, chosen, SIZE, ABOVE))
        torch.set_num_threads(3)
        together = list(frames(recording, chosen, SIZE, ABOVE))
    finally:
        torch.set_num_threads(before)
    assert len(alone) == len(together) == len(chosen)
    assert all((a == b).all() for a, b in zip(alone, together, strict=True))
    assert (alone[0] == alone[1]).all() and not (alone[2] == alone[7]).all()


def test_the_bar_is_shown_if_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    robot = cs.load_robot("pendulum1")
    cs.render(robot, swinging(4), tmp_path / "a[b].gif", size=SIZE, fps=10, dt=0.1)
    assert capsys.readouterr().err == ""  # no terminal, no bar
    cs.render(robot, swinging(4), tmp_path / "a[b].gif", size=SIZE, fps=10, dt=0.1, progress=True)
    assert "a[b].gif" in (told := capsys.readouterr().err) and "4/4" in told


def test_a_frame_takes_little_time() -> None:
    """A film took 1.3 s of processor time per frame before its loops were compiled; 0.035 s since (benchmarks/bench_film.py)."""
    robot = cs.load_robot("ur5")
    q = torch.as_tensor(robot.model.home).double() + 0.1 * swinging(10)
    recording = record(robot, q, trails=["tool0"])
    list(frames(recording, [0], (960, 540), ABOVE))
    begun = time.process_time()
    list(frames(recording, range(10), (960, 540), ABOVE))
    assert (time.process_time() - begun) / 10 < 0.13
