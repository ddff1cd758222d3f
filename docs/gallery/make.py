"""Makes the replays of the gallery, their pictures, and its page: python docs/gallery/make.py [NAME...]

Without names, it makes those that are missing. "player" puts the present script and style of reports into all replays,
"pictures" takes their pictures again, "tour" makes the film of the home page from them, and "page" only writes
docs/gallery.md. Pictures need Chromium.
"""

from __future__ import annotations

import lzma
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))  # for the other files of this folder, and the browser of the tests
LARGEST = 500_000
"""Bytes of a packed replay in the repository, at most."""


@dataclass(frozen=True)
class Replay:
    """A replay of the gallery."""

    title: str
    """What is seen."""
    command: str
    """Command that makes it, in a checkout whose environment is active; "{examples}" is a folder of the checkout."""
    page: str
    """HTML file that the command writes, below the folder it runs in."""
    read: str
    """Page of the documentation about it."""
    moment: float = 0.5
    """Share of the motion that has passed in its picture."""
    view: int = 0
    """Number of the replay in the page that the picture shows."""


def example(stem: str, title: str, read: str, page: str = "", **options: float) -> Replay:
    """Return the replay that an example writes."""
    return Replay(title, f"python {{examples}}/{stem}.py", page or f"out/{stem}.html", read, **options)  # pyright: ignore[reportArgumentType]


def solved(task: str, title: str, read: str, options: str = "", **more: float) -> Replay:
    """Return the replay in the report of a solved task."""
    command = f"costate solve {task}{options and ' ' + options}"
    return Replay(title, command, f"out/{task}.html", read, **more)  # pyright: ignore[reportArgumentType]


def trained(task: str, title: str, read: str, options: str = "", report: str = "", **more: float) -> Replay:
    """Return the replay in the report of a training."""
    lines = f"costate train {task} --out out/{task} {options}", f"costate report out/{task} {report}"
    return Replay(title, "\n".join(map(str.strip, lines)), f"out/{task}/report.html", read, **more)  # pyright: ignore[reportArgumentType]


SECTIONS = {
    "Robots and contact": {
        "laikago": example(
            "06_laikago_stands_and_falls", "A quadruped stands until its motors are switched off", "simulation.md"
        ),
        "cradle": example("08_newtons_cradle", "Newton's cradle: elastic impacts", "contact.md", moment=0.1),
        "four_bar": example("10_four_bar", "A closed linkage, turned by a DC motor", "contact.md"),
        "pile": example("11_pile", "64 boxes fall into a pile", "contact.md", moment=0.4),
        "file": example("14_world_from_a_file", "Four walkers from an MJCF file", "worlds.md", moment=0.2),
    },
    "Motions found by gradients": {
        "swing": example("03_gradient_through_dynamics", "An arm swings to a pose", "tutorial/5_optimise.md"),
        "throw": solved("throw", "An arm throws a ball at a target", "optimisation.md"),
        "golf": solved("golf", "A linkage hits a golf ball", "optimisation.md"),
        "racecar": solved("racecar", "The friction with which a braking car stops at a line", "optimisation.md"),
        "push": solved("push", "A finger pushes a box to a pose", "optimisation.md"),
        "pendulum": solved("pendulum3", "Three links swing up and balance", "optimisation.md"),
        "reach": solved("reach", "A Panda reaches among obstacles", "optimisation.md"),
        "inhand": solved("inhand_shadow", "A Shadow hand turns a cube on its palm", "inhand.md", "--starts 3"),
    },
    "Trained controllers": {
        "insertion": trained("insertion", "A UR5 puts a bottle into a socket", "insertion.md"),
        "touch": trained(
            "insertion",
            "Insertion by touch: the socket is 1 mm from where it is seen",
            "insertion_contact.md",
            "--chamfered",
        ),
        "own_task": example("12_own_task", "Pendulums learn to stand up", "own_task.md", "out/12_own_task/report.html"),
        "reaching": trained("reach", "A UR5 brings its tool to random positions", "own_task.md"),
        "ant": trained("ant_v5", "gymnasium's Ant-v5 learns to run by reward", "gymnasium_v5.md"),
        "valve": trained(
            "wheel", "A Shadow hand on a UR5 turns a valve", "manipulation.md", report="--episodes 1", moment=0.7
        ),
    },
    "From measurements": {
        "identify": solved("identify_contact", "Friction and restitution from a recorded motion", "optimisation.md"),
    },
    "Soft bodies, cloth, fluids and heat": {
        "crawler": solved("soft_crawler", "A soft robot crawls with eight muscles", "soft_bodies.md", moment=0.6),
        "wheel": solved("soft_rolling", "A soft wheel rolls", "soft_bodies.md"),
        "plasticine": solved(
            "plasticine_rope", "Two fingers bend a rope of plasticine around a pillar", "soft_bodies.md", moment=0.9
        ),
        "knead": solved("soft_knead", "A UR5 flattens dough with a pin", "soft_bodies.md", moment=0.9),
        "pour": solved("soft_pour", "A jug, held by a UR5, is poured into a cup", "soft_bodies.md", moment=0.8),
        "fold": solved("cloth_fold", "A UR5 folds a towel", "cloth.md", moment=0.7),
        "towel": solved("cloth_towel", "A towel falls over a ball", "cloth.md", moment=0.7),
        "smoke": example("18_smoke", "A puff of smoke becomes a letter", "fluids.md", moment=1.0),
        "printed": example("16_printed_wall", "A wall is printed, bead on bead", "additive.md", moment=0.7),
    },
}
"""Heading -> name -> replay."""
REPLAYS = {name: replay for section in SECTIONS.values() for name, replay in section.items()}


def packed(name: str) -> Path:
    """Return the file in which a replay is kept."""
    return HERE / f"{name}.html.xz"


def make(name: str, replay: Replay) -> None:
    """Run the commands of a replay in an empty folder, and keep the page that they write."""
    with TemporaryDirectory() as here:
        for line in replay.command.format(examples=ROOT / "examples").splitlines():
            program, *arguments = shlex.split(line)
            binary = sys.executable if program == "python" else Path(sys.executable).parent / program
            subprocess.run([binary, *arguments], cwd=here, check=True)
        found = lzma.compress((Path(here) / replay.page).read_bytes(), preset=9)
    if len(found) > LARGEST:
        raise SystemExit(f"{name}: {len(found) / 1e6:.1f} MB; a replay of the gallery has at most {LARGEST / 1e6} MB")
    packed(name).write_bytes(found)
    print(f"{packed(name).name} {len(found) / 1000:.0f} kB")


def renew(name: str) -> None:
    """Put the present player into a replay."""
    from costate.report import Report

    page = lzma.decompress(packed(name).read_bytes()).decode()
    report = Report("")
    for kind in set(re.findall(r'data-kind="(\w+)"', page)):
        report._named({"recording": "replay.js"}.get(kind, f"{kind}.js"))
    for part in (r"<style>.*?</style>", r"<script>(?:(?!<script>).)*</script>(?=</body>)"):
        (present,) = re.findall(part, report.html(), re.DOTALL)
        page, count = re.subn(part, lambda _, new=present: new, page, flags=re.DOTALL)
        if count != 1:
            raise SystemExit(f"{name}: {count} places for the player, not one; make the replay again")
    packed(name).write_bytes(lzma.compress(page.encode(), preset=9))


def write_page() -> None:
    """Write docs/gallery.md: a card for every replay that exists."""
    parts = [
        "# Gallery\n\nEach picture opens an interactive 3D replay: rotate it with the mouse, pause it, step through it. Below "
        "each picture\nis the command that made it, to be run in a checkout with its environment activated; "
        "`docs/gallery/make.py` runs them all."
    ]
    for heading, section in SECTIONS.items():
        cards = [card(name, replay) for name, replay in section.items() if packed(name).exists()]
        if not cards:
            continue
        parts.append(f'## {heading}\n\n<div class="gallery" markdown>\n\n' + "\n\n".join(cards) + "\n\n</div>")
    (HERE.parent / "gallery.md").write_text("\n\n".join(parts) + "\n")


def card(name: str, replay: Replay) -> str:
    """Return one replay as Markdown."""
    command = replay.command.format(examples="examples")
    return (
        '<div class="card" markdown>\n\n'
        f"[![{replay.title}](gallery/{name}.webp)](gallery/{name}.html)\n\n"
        f"**{replay.title}** ([more]({replay.read}))\n\n```sh\n{command}\n```\n\n</div>"
    )


def main(names: list[str]) -> None:
    """Make what is named."""
    from docs.gallery.pictures import film, take

    for name in names or [name for name in REPLAYS if not packed(name).exists()]:
        if name == "tour":
            film()
        elif name == "pictures":
            take([name for name in REPLAYS if packed(name).exists()])
        elif name == "player":
            for replay in filter(lambda name: packed(name).exists(), REPLAYS):
                renew(replay)
        elif name != "page":
            make(name, REPLAYS[name])
            take([name])
    write_page()


if __name__ == "__main__":
    main(sys.argv[1:])
