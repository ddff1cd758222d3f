"""Files of data to be damaged: tool paths, meshes of parts, logs, policies, worlds, tensors, recordings.

A kind is a folder with sound files, the damage that may be done to each, and what must hold if the folder is read all the same.
"""

from __future__ import annotations

import io
import random
import re
import shutil
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save

from benchmarks.faults.damage import BYTES, CODE, JSON, TEXT, Damage

Tables = Mapping[str, Mapping[str, Damage]]


@dataclass(frozen=True)
class Kind:
    """A kind of input."""

    name: str
    """Name in tables."""
    make: Callable[[Path], None]
    """Writes sound files into a folder."""
    damage: Tables
    """File -> damage -> its function."""
    read: Callable[[Path, Path], str]
    """Reads the files of a folder, and says which promise is broken; nothing if none is. The second folder has the sound ones."""
    certain: tuple[str, ...] = ("file empty",)
    """Damage that cannot be right."""


def damaged_data(kind: Kind, chance: random.Random, folder: Path) -> tuple[str, bool, Callable[[], str]]:
    """Damage one of a kind's files; return what was done, whether it must be refused, and how it is read."""
    sound, path = folder / f"sound {kind.name}", folder / "data"
    if not sound.exists():
        sound.mkdir()
        kind.make(sound)
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(sound, path)
    names = list(kind.damage)
    name = chance.choice([*names[:1] * 3, *names[1:]])  # the first file says most
    damage = chance.choice([d for d in kind.damage[name] for _ in range(4 if "value" in d or "word" in d else 1)])
    before = (sound / name).read_bytes()
    after = kind.damage[name][damage](before, chance)
    (path / name).write_bytes(after)
    return f"{name}: {damage}", damage in kind.certain and after != before, lambda: kind.read(path, sound)


# --- tool paths and meshes of parts -------------------------------------------------------------------------------------

GCODE = """; a part
G21 G90 G17
G0 X0 Y0 Z1 (to the start)
M3 S200
G1 X10.5 Y-3 F600
X20 Y0
G91
G1 X1 E0.5 F300 ; relative
G4 P250
M5
G92 X0
G20
G0 X1 Y1
M30
"""


def _make_paths(folder: Path) -> None:
    from costate.continuum.files.paths import read_toolpath, write_toolpath

    (folder / "path.gcode").write_text(GCODE)
    for suffix in ("csv", "crs"):
        write_toolpath(folder / f"path.{suffix}", read_toolpath(folder / "path.gcode"))


def _read_paths(folder: Path, sound: Path) -> str:
    from costate.continuum.files.paths import read_toolpath

    for file in sorted(folder.iterdir()):
        path = read_toolpath(file)
        if not (np.isfinite(path.times).all() and np.isfinite(path.positions).all() and path.duration >= 0):
            return f"{file.name} has numbers that are not finite"
    return ""


def _make_part(folder: Path) -> None:
    from costate.continuum.files.lsdyna import write_lsdyna
    from costate.continuum.mesh import HexMesh

    points = np.array([[x, y, z] for z in range(3) for y in range(2) for x in range(3)], float)
    low = np.array([[i, i + 1, i + 4, i + 3] for z in range(2) for i in (6 * z, 6 * z + 1)])
    elements = np.concatenate([low, low + 6], axis=1)
    write_lsdyna(folder / "part.k", HexMesh.sorted(0.01 * points, elements, np.array([0.0, 0.5, 1.0, 1.5])))


def _read_part(folder: Path, sound: Path) -> str:
    from costate.continuum.files.lsdyna import read_lsdyna
    from costate.continuum.hexahedron import volumes

    mesh = read_lsdyna(folder / "part.k")
    volume = volumes(mesh.nodes, mesh.elements)
    return "" if (volume > 0).all() and np.isfinite(volume).all() else f"elements have the volumes {volume}"


# --- logs ---------------------------------------------------------------------------------------------------------------


def _columns() -> dict[str, np.ndarray]:
    t = np.arange(40) / 100
    return {"t": t, **{f"{n}_{k}": np.sin(t * k + len(n)) for n in ("q", "v", "tau") for k in (1, 2)}}


def _make_csv(folder: Path) -> None:
    columns = _columns()
    rows = [",".join(columns), *(",".join(map(repr, row)) for row in np.stack(list(columns.values()), 1).tolist())]
    (folder / "log.csv").write_text("\n".join(rows) + "\n")


def _make_npz(folder: Path) -> None:
    np.savez(folder / "log.npz", **_columns())  # pyright: ignore[reportArgumentType]
    np.savez_compressed(folder / "packed.npz", **_columns())  # pyright: ignore[reportArgumentType]


def _make_parquet(folder: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(_columns()), folder / "log.parquet", compression="snappy")
    parquet.write_table(pyarrow.table(_columns()), folder / "plain.parquet", compression="none", use_dictionary=False)


def _read_logs(folder: Path, sound: Path) -> str:
    from costate.identify.log import Log
    from costate.model import load_model

    model = load_model("two_link")
    for file in sorted(folder.iterdir()):
        log = Log.read(file, model)
        if not len(log.q) == len(log.tau) == len(log) or log.q.shape[1] != 2 or log.q.dtype != np.float64:
            return f"{file.name} has q {log.q.shape} of {log.q.dtype} and tau {log.tau.shape}"
    return ""


def _claim(data: bytes, chance: random.Random) -> bytes:
    """An array whose header claims something else than its bytes are."""
    kind = chance.choice(("<f8", "|O", "<U100000", ">f4", "<c16", "<f16", "|V8", "nonsense", "<M8[s]", "|b1"))
    shape = chance.choice(("(40,)", "(10**12,)", "(1000000000000,)", "(40, 1000000000)", "(-1,)", "(1.5,)", "()", "x"))
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    version = chance.choice((b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\x09\0"))
    length = len(text).to_bytes(2 if version == b"\1\0" else 4, "little")
    member = b"\x93NUMPY" + version + length + text.encode() + bytes(8 * 40)
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        chosen = chance.choice(old.namelist())
        for name in old.namelist():
            archive.writestr(name, member if name == chosen else old.read(name))
    return made.getvalue()


def _directory(data: bytes, chance: random.Random) -> bytes:
    """Another size, place or method in the directory of an archive."""
    out = bytearray(data)
    place = chance.choice([m.start() for m in re.finditer(b"PK\x01\x02", data)])
    out[place + chance.randrange(6, 46)] = chance.randrange(256)
    return bytes(out)


# --- tensors, policies, worlds, recordings ------------------------------------------------------------------------------


def _header(data: bytes, chance: random.Random) -> bytes:
    """Another value in the header of a safetensors file."""
    size = int.from_bytes(data[:8], "little")
    text = JSON[chance.choice(list(JSON))](data[8 : 8 + size], chance)
    length = chance.choice((len(text), len(text), len(text), 2**63, 0, len(data) + 1))
    return length.to_bytes(8, "little") + text + data[8 + size :]


def _note(data: bytes, chance: random.Random) -> bytes:
    """Another note, with no checksum."""
    return save(
        load(data), {"note": chance.choice(("[" * 100_000, "[]", "nan", "", "{", '{"iteration": 1e999}', "null"))}
    )


def _tensor(data: bytes, chance: random.Random) -> bytes:
    """Another tensor in the place of one, with no checksum to tell."""
    tensors = load(data)
    name = chance.choice(list(tensors))
    t = tensors[name]
    other: list[Any] = [
        t.reshape(-1)[:0],
        t.reshape(-1),
        t[None],
        t.to(torch.int64),
        t > 0,
        t * torch.nan,
        t.to(torch.bfloat16),
    ]
    tensors[name] = chance.choice(other).contiguous()
    if chance.random() < 0.2:
        del tensors[name]
    return save(tensors, {"note": "{}"})


TENSORS: Mapping[str, Damage] = {**BYTES, "the header": _header, "the note": _note, "a tensor": _tensor}


def _make_tensors(folder: Path) -> None:
    from costate.core.tensors import write_tensors

    values = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1, 2]), "c": torch.tensor(2.0).double()}
    write_tensors(folder / "weights.safetensors", values, {"iteration": 3})


def _read_tensors(folder: Path, sound: Path) -> str:
    from costate.core.tensors import read_tensors

    tensors, note = read_tensors(folder / "weights.safetensors")
    return "" if isinstance(note, dict) and all(t.numel() < 100 for t in tensors.values()) else "more than was written"


def _make_policy(folder: Path) -> None:
    from costate.core.files import write_json
    from costate.core.tensors import write_tensors
    from costate.train.network import Network

    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.ELU(), torch.nn.Linear(8, 2), torch.nn.Softmax(-1)
    )
    names = tuple((f"number {k}", "m") for k in range(4))
    network = Network.of(layers, names, names[:2], np.zeros(2), np.ones(2), "a test")
    observed = {"observation.matrix": torch.ones(6, 4), "observation.offset": torch.zeros(4)}
    write_tensors(folder / "policy.safetensors", network.tensors() | observed)
    write_json(folder / "policy.json", {"task": "x", "horizon": 30} | network.note())


def _read_policy(folder: Path, sound: Path) -> str:
    from costate.export import write_c_header
    from costate.train.controller import load_policy

    controller = load_policy(folder)
    with np.errstate(all="ignore"):
        command = controller(np.linspace(-1, 1, len(controller.network.inputs)))
    if command.shape != (len(controller.network.outputs),):
        return f"a command has the shape {command.shape}"
    program = write_c_header(controller.network, folder / "policy.h").read_text()
    return "the header has code of the file" if CODE[4:10] in re.sub(r"/\*.*?\*/", "", program, flags=re.DOTALL) else ""


def _make_world(folder: Path) -> None:
    import costate as cs

    s = cs.shapes
    heights = 0.03 * np.sin(np.arange(12.0))[:, None] + np.zeros(12)
    world = cs.World(
        robots=[cs.load_robot("two_link")],
        bodies=[
            cs.Body("ball", [s.sphere(0.1)], mass=1.0, friction=0.4),
            cs.Body("box", [s.box((0.1, 0.2, 0.3))], 2.0),
        ],
        scenery=[cs.Static("hills", s.heightfield(heights, (2.0, 2.0)))],
        actuators={"two_link": cs.DCMotor(2.0, 10.0, 5.0, 0.001)},
        parameters=["friction"],
        dt=0.004,
    )
    world.save(folder / "world.json")


def _read_world(folder: Path, sound: Path) -> str:
    import costate as cs
    from benchmarks.faults.inputs import broken_model

    world = cs.load_world(folder / "world.json")
    if not world.initial_state().isfinite().all():
        return "its first state is not finite"
    return broken_model(world.setup.scene.model, moments=False)  # a URDF may be read with inertia="keep"


def _make_networks(folder: Path) -> None:
    import costate as cs

    robot = cs.load_robot("pendulum2").double()
    robot.augment("joint_torque", on="joint_1", inputs=["speed", "speed:joint_2"], hidden=(4, 3), activation="elu")
    robot.augment("drag", on=["link_1", "link_2"], constraints="dissipative", replace=True, name="water")
    robot.save_networks(folder / "nets")


def _read_networks(folder: Path, sound: Path) -> str:
    import costate as cs

    networks = cs.load_robot("pendulum2").load_networks(folder / "nets")
    vectors = [network.vector() for network in networks.values()]
    return (
        "" if all(v.isfinite().all() and v.numel() < 1000 for v in vectors) else "weights are not finite, or too many"
    )


def _make_recording(folder: Path) -> None:
    import costate as cs
    from costate.draw.recording import record, save_recording

    world = cs.World([cs.load_robot("two_link")], contact=None, dt=0.01)
    states = world.rollout(world.initial_state(), steps=4)
    save_recording(record(world, states, trails=[world.link_names[-1]], energy=True), folder)


def _read_recording(folder: Path, sound: Path) -> str:
    from costate.draw.recording import load_recording
    from costate.draw.render import render_recording

    recording = load_recording(folder)
    picture = render_recording(recording, folder / "picture.png", size=(24, 16))
    return "" if picture.stat().st_size > 100 else "it is not drawn"


_CSV, _LOGS = {**BYTES, **TEXT}, ("file empty", "file cut short")
_NPZ = {**BYTES, "a claim": _claim, "the directory": _directory}
DATA: dict[str, Kind] = {
    "gcode": Kind(
        "tool paths (G-code, CSV, CRS)",
        _make_paths,
        {"path.gcode": _CSV, "path.csv": _CSV, "path.crs": _CSV},
        _read_paths,
    ),
    "lsdyna": Kind("LS-DYNA files", _make_part, {"part.k": {**BYTES, **TEXT}}, _read_part),
    "csv": Kind("logs as CSV", _make_csv, {"log.csv": _CSV}, _read_logs),
    "npz": Kind(
        "logs as NPZ",
        _make_npz,
        {"log.npz": _NPZ, "packed.npz": _NPZ},
        _read_logs,
        _LOGS,
    ),
    "parquet": Kind(
        "logs as Parquet", _make_parquet, {"log.parquet": BYTES, "plain.parquet": BYTES}, _read_logs, _LOGS
    ),
    "policy": Kind(
        "policies", _make_policy, {"policy.json": {**BYTES, **JSON}, "policy.safetensors": TENSORS}, _read_policy
    ),
    "world": Kind("worlds", _make_world, {"world.json": {**BYTES, **JSON}, "world.safetensors": TENSORS}, _read_world),
    "safetensors": Kind(
        "tensors", _make_tensors, {"weights.safetensors": TENSORS}, _read_tensors, ("file empty", "file cut short")
    ),
    "networks": Kind(
        "networks of robots",
        _make_networks,
        {"nets.json": {**BYTES, **JSON}, "nets.safetensors": TENSORS},
        _read_networks,
    ),
    "recording": Kind(
        "recordings",
        _make_recording,
        {"recording.json": {**BYTES, **JSON}, "recording.safetensors": TENSORS},
        _read_recording,
    ),
}
"""Kind -> its files."""
