"""Makes the replays of the gallery, and its page: python docs/gallery/make.py [NAME...]"""

from __future__ import annotations

import lzma
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LARGEST = 500_000
"""Bytes of a packed replay in the repository, at most."""


@dataclass(frozen=True)
class Replay:
    """A replay of the gallery."""

    title: str
    """What is seen."""
    command: str
    """Command that makes it, in a checkout whose environment is active; "{examples}" and "{data}" are folders of the checkout."""
    page: str
    """HTML file that the command writes, below the folder it runs in."""
    read: str
    """Page of the documentation about it."""


def example(stem: str, title: str, read: str, page: str = "") -> Replay:
    """Return the replay that an example writes."""
    return Replay(title, f"python {{examples}}/{stem}.py", page or f"out/{stem}.html", read)


def solved(task: str, title: str, read: str, options: str = "") -> Replay:
    """Return the replay in the report of a solved task."""
    return Replay(title, f"costate solve {task} --out out{options and ' ' + options}", f"out/{task}.html", read)


REPLAYS = {
    "swing": example("03_gradient_through_dynamics", "An arm swings to a pose", "tutorial/5_optimise.md"),
    "laikago": example("06_laikago_stands_and_falls", "A Laikago stands, is pushed, and falls", "simulation.md"),
    "cradle": example("08_newtons_cradle", "Newton's cradle", "contact.md"),
    "insertion": Replay(
        "A UR5 puts a bottle into a socket",
        "costate report {data}/insertion --out out.html",
        "out.html",
        "insertion.md",
    ),
    "four_bar": example("10_four_bar", "A closed linkage, turned by a DC motor", "contact.md"),
    "own_task": example("12_own_task", "Pendulums learn to stand up", "own_task.md", "out/12_own_task/report.html"),
    "file": example("14_world_from_a_file", "A walker from an MJCF file", "worlds.md"),
    "trot": example(
        "15_walking_robot", "A Laikago learns to trot", "reinforcement_learning.md", "out/15_walking_robot/report.html"
    ),
    "printed": example("16_printed_wall", "A wall is printed", "additive.md"),
    "walker": example("17_soft_walker", "A soft robot walks", "soft_bodies.md"),
    "smoke": example("18_smoke", "Smoke becomes a letter", "fluids.md"),
    "throw": solved("throw", "An arm throws a ball into a basket", "optimisation.md"),
    "golf": solved("golf", "An arm plays golf", "optimisation.md"),
    "racecar": solved("racecar", "A car parks", "optimisation.md"),
    "push": solved("push", "A finger pushes a block", "optimisation.md"),
    "pendulum": solved("pendulum7", "Seven links swing up", "optimisation.md"),
    "crawler": solved("soft_crawler", "A soft robot crawls", "soft_bodies.md"),
    "finger": solved("soft_finger", "A soft finger bends", "soft_bodies.md"),
    "plasticine": solved("plasticine_move", "A ball of plasticine is moved", "soft_bodies.md"),
}
"""Name -> replay."""


def make(name: str, replay: Replay) -> None:
    """Run the command of a replay in an empty folder, and keep the page that it writes."""
    with TemporaryDirectory() as here:
        command = shlex.split(replay.command.format(examples=ROOT / "examples", data=ROOT / "tests" / "data"))
        binary = Path(sys.executable).parent
        program = [sys.executable] if command[0] == "python" else [str(binary / command[0])]
        subprocess.run([*program, *command[1:]], cwd=here, check=True)
        packed = lzma.compress((Path(here) / replay.page).read_bytes(), preset=9)
        size = len(packed)
        if size > LARGEST:
            raise SystemExit(f"{name}: {size / 1e6:.1f} MB; a replay of the gallery has at most {LARGEST / 1e6} MB")
        (HERE / f"{name}.html.xz").write_bytes(packed)
        print(f"{name}.html.xz {size / 1000:.0f} kB")


def write_page() -> None:
    """Write docs/gallery.md: a section for every replay that exists."""
    parts = [
        "# Gallery\n\nReplays in 3D: turn them, stop them, step through them. Below each is the command that made it."
    ]
    for name, replay in REPLAYS.items():
        if (HERE / f"{name}.html.xz").exists():
            command = replay.command.format(examples="examples", data="tests/data")
            parts.append(
                f"## {replay.title}\n\n"
                f'<iframe class="replay" loading="lazy" title="{replay.title}" src="gallery/{name}.html"></iframe>\n\n'
                f"```sh\n{command}\n```\n\n[Full page](gallery/{name}.html) · [Read more]({replay.read})"
            )
    (HERE.parent / "gallery.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or REPLAYS:
        make(chosen, REPLAYS[chosen])
    write_page()
