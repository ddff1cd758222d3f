"""Files of frames: PNG, animated GIF and WebP, MP4 and WebM."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from costate.core.extras import needs

Frames = Iterable[np.ndarray]
"""RGB bytes, each (height, width, 3)."""


def _still(path: Path, frames: Frames, fps: float) -> None:
    from PIL import Image

    *_, last = frames
    Image.fromarray(last).save(path, optimize=True)


def _animation(path: Path, frames: Frames, fps: float) -> None:
    from PIL import Image

    def stored(frame: np.ndarray) -> Image.Image:
        image = Image.fromarray(frame)
        few = {"method": Image.Quantize.MEDIANCUT, "dither": Image.Dither.NONE}
        return image.quantize(128, **few) if path.suffix.lower() == ".gif" else image

    images = [stored(frame) for frame in frames]
    images[0].save(path, save_all=True, append_images=images[1:], duration=max(20, round(1000 / fps)), loop=0)


def _movie(path: Path, frames: Frames, fps: float) -> None:
    writer: Any = None
    try:
        import imageio_ffmpeg

        write: Any = imageio_ffmpeg.write_frames  # typed for whole frames per second only

        for frame in frames:
            if writer is None:
                height, width = frame.shape[:2]
                writer = write(
                    str(path), (width, height), fps=fps, quality=8, macro_block_size=2, ffmpeg_log_level="error"
                )
                writer.send(None)
            writer.send(np.ascontiguousarray(frame))
    except ImportError as error:
        raise ImportError(
            needs(f"writing {path.name}", "ffmpeg, which comes with imageio-ffmpeg", "view")
            + ", or ask for a .gif, which needs nothing"
        ) from error
    finally:
        if writer is not None:
            writer.close()


WRITERS: dict[str, Callable[[Path, Frames, float], None]] = {
    ".png": _still,
    ".jpg": _still,
    ".gif": _animation,
    ".webp": _animation,
    ".mp4": _movie,
    ".webm": _movie,
}
"""Suffix -> writer of frames. Stills take the last frame."""

STILLS = (".png", ".jpg")


def writer_for(path: Path) -> Callable[[Path, Frames, float], None]:
    if path.suffix.lower() not in WRITERS:
        raise ValueError(f"a picture or film ends in {', '.join(WRITERS)}; {path.name!r} given")
    return WRITERS[path.suffix.lower()]
