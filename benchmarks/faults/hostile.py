"""Hostile files: generators of files that ask for more than any machine has, or lead where they must not.

A case is a kind and a seed, read in a process of its own: what that takes is measured, and its end is told from a hang.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import struct
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from benchmarks.faults.process import Child, cpu_seconds, track
from benchmarks.measure.harness import Table, environment
from costate.collision.mesh.files import load_triangles
from costate.model import load_model

SECONDS, MEMORY_MB = 3, 600
"""Limits that are given to the processes that read."""
MOST_SECONDS = 30.0
"""Processor time that a case may take, of all processes; a file of 16 MB takes some seconds."""
MOST_MB = 2000.0
"""Growth of memory that a case may cause: that of reading, its interpreter included, and of what comes back."""
STUCK = 600.0
"""Seconds on the clock after which a case counts as hanging, on a busy machine, too."""
SMALL = '<geom size="0.1"/>'


def _count(chance: random.Random, low: float = 4, high: float = 9) -> int:
    return int(10 ** chance.uniform(low, high))


# --- URDF ---------------------------------------------------------------------------------------------------------------

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def _tree_urdf(chance: random.Random, folder: Path) -> Path:
    """A tree of ten thousands of links: a chain, a star, a comb or a random one; some joints mimic others."""
    count, shape, mimics = (
        chance.randint(5_000, 30_000),
        chance.choice(("chain", "star", "comb", "random")),
        chance.random() < 0.5,
    )
    parent: dict[str, Callable[[int], int]] = {
        "chain": lambda i: i - 1,
        "star": lambda i: 0,
        "comb": lambda i: i - 1 if i % 2 else max(0, i - 2),
        "random": lambda i: chance.randrange(i),
    }
    links = "".join(f'<link name="l{i}">{INERTIAL}</link>' for i in range(count))
    joints = []
    for i in range(1, count):
        follow = f'<mimic joint="j{chance.choice((1, i - 1))}"/>' if mimics and i > 2 and chance.random() < 0.2 else ""
        ends = f'<parent link="l{parent[shape](i)}"/><child link="l{i}"/>'
        joints.append(f'<joint name="j{i}" type="continuous">{ends}{follow}</joint>')
    chance.shuffle(joints)
    return _text(folder / "robot.urdf", f'<robot name="r">{links}{"".join(joints)}</robot>')


def _digits_urdf(chance: random.Random, folder: Path) -> Path:
    """Numbers with ten thousands of characters, in places where numbers are."""
    digits = chance.choice("0123456789") * _count(chance, 4, 5.5)
    number = chance.choice(("{}", "{}.{}", "-{}e{}", "{}e-{}", "0.{}x", "{} {}", "{}.", "{}e", "+.{}", "1e{}")).replace(
        "{}", digits
    )
    place = chance.choice(("mass", "ixx", "xyz", "axis", "upper"))
    value = dict.fromkeys(("mass", "ixx", "upper"), "1") | {"xyz": "0 0 1", "axis": "0 0 1"} | {place: number}
    return _text(
        folder / "robot.urdf",
        f'<robot name="r"><link name="a"/><link name="b"><inertial><mass value="{value["mass"]}"/>'
        f'<inertia ixx="{value["ixx"]}" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="revolute">'
        f'<parent link="a"/><child link="b"/><origin xyz="{value["xyz"]}"/><axis xyz="{value["axis"]}"/>'
        f'<limit lower="-1" upper="{value["upper"]}" effort="1" velocity="1"/></joint></robot>',
    )


def _text_urdf(chance: random.Random, folder: Path) -> Path:
    """Long stretches of what XML has besides elements."""
    piece = chance.choice(
        ("<?xml a", " <?xml version='1.0'", "<!-- -->", "<![CDATA[x]]>", "<?p q?>", "&amp;", "<a:b>", " \t\n", "]]>")
    )
    return _text(folder / "robot.urdf", f'<robot name="r"><link name="a"/>{piece * _count(chance, 3, 5.7)}</robot>')


# --- MJCF ---------------------------------------------------------------------------------------------------------------


def _copies_mjcf(chance: random.Random, folder: Path) -> Path:
    """Elements copied by nested, included and attached copies, to a number that is seldom small."""
    inside = f'<body name="inner"><joint/>{SMALL}</body>' if chance.random() < 0.5 else SMALL
    assets = ""
    for level in range(chance.randint(1, 4)):
        way, n = chance.choice(("replicate", "include", "attach")), int(10 ** chance.uniform(0.5, 3))
        if way == "include":
            _text(folder / f"part{level}.xml", f"<mujocoinclude>{inside}</mujocoinclude>")
            inside = f'<include file="part{level}.xml"/>'
        elif way == "attach":
            _text(
                folder / f"part{level}.xml",
                f'<mujoco model="m{level}">{assets}<worldbody><body name="b{level}">{inside}</body></worldbody></mujoco>',
            )
            assets = f'<asset><model name="m{level}" file="part{level}.xml"/></asset>'
            inside = f'<attach model="m{level}" body="b{level}" prefix="p{level}"/>'
        inside = f'<replicate count="{n}" offset="0.1 0 0" sep="s{level}">{inside}</replicate>'
    return _mjcf(folder, assets, inside)


def _sizes_mjcf(chance: random.Random, folder: Path) -> Path:
    """One element that needs as much as its numbers say."""
    n, m = _count(chance), _count(chance, 1, 5)
    inside, world = chance.choice(
        (
            (f'<size njmax="{n}" nconmax="{n}"/>', ""),
            (f'<size memory="{chance.randint(1, 900)}{chance.choice("MGTPE")}"/>', ""),
            (f'<size nuser_geom="{n}"/>', SMALL * 100),
            (f'<asset><hfield name="h" nrow="{m}" ncol="{m}" size="1 1 1 1"/></asset>', ""),
            (f'<asset><texture name="t" type="cube" builtin="gradient" width="{m}" height="{6 * m}"/></asset>', ""),
            (f'<asset><mesh name="m" builtin="sphere" params="{m}"/></asset>', ""),
            (f'<custom><numeric name="n" size="{n}"/></custom>', ""),
            (f'<sensor><user dim="{n}"/></sensor>', ""),
            (f"<keyframe>{'<key/>' * min(m, 20_000)}</keyframe>", '<body><freejoint/><geom size="1"/></body>' * 200),
            ("", f'<composite type="cable" count="{m} 1 1" size="1"><geom type="capsule" size=".01"/></composite>'),
            ("", f'<flexcomp name="f" type="grid" count="{m} {chance.randint(2, 50)} 2" spacing="1 1 1"/>'),
            ("", f"<body><freejoint/>{SMALL}</body>" * min(m, 6000)),
        )
    )
    return _mjcf(folder, inside, world)


def _slow_mjcf(chance: random.Random, folder: Path) -> Path:
    """Work that the compiler does by itself: ranges of muscles, hulls, inertias of many small parts."""
    if chance.random() < 0.6:
        total, step = 10 ** chance.uniform(3, 9), 10 ** chance.uniform(-9, -2)
        ranges = f'<compiler><lengthrange mode="all" inttotal="{total}" interval="{total / 2}" timestep="{step}"/></compiler>'
        muscles = "".join(f'<muscle joint="j{i}"/>' for i in range(chance.randint(1, 40)))
        joints = "".join(f'<body><joint name="j{i}" range="-1 1" limited="true"/>{SMALL}</body>' for i in range(40))
        return _mjcf(folder, f"{ranges}<actuator>{muscles}</actuator>", joints)
    count = chance.randint(10_000, 150_000)
    points = [chance.gauss(0, 1) for _ in range(9 * count)]
    rows = b"".join(bytes(12) + struct.pack("<9f", *points[9 * k : 9 * k + 9]) + b"\0\0" for k in range(count))
    (folder / "m.stl").write_bytes(bytes(80) + struct.pack("<I", count) + rows)
    return _mjcf(folder, '<asset><mesh name="m" file="m.stl"/></asset>', '<geom type="mesh" mesh="m"/>')


def _mjcf(folder: Path, inside: str, world: str) -> Path:
    return _text(
        folder / "robot.xml",
        f'<mujoco>{inside}<worldbody><body name="own"><joint/>{SMALL}</body>{world}</worldbody></mujoco>',
    )


# --- meshes -------------------------------------------------------------------------------------------------------------


def _gltf(chance: random.Random, folder: Path) -> Path:
    """A glTF file with some of its numbers replaced by large ones, and some of its lists repeated."""
    corners = 3 * chance.randint(1, 20_000)
    data = struct.pack(f"<{3 * corners}f", *(chance.gauss(0, 1) for _ in range(3 * corners)))
    tree: dict = {
        "asset": {"version": "2.0"},
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": corners, "type": "VEC3"}],
        "bufferViews": [{"buffer": 0, "byteLength": len(data)}],
        "buffers": [{"byteLength": len(data)}],
    }
    for _ in range(chance.randint(1, 3)):
        name, n = (
            chance.choice(("scenes", "nodes", "meshes", "accessors", "bufferViews", "buffers", "count", "zeros")),
            _count(chance, 2, 4.7),
        )
        if name == "count":
            chance.choice(tree["accessors"])["count"] = _count(chance, 3, 15)
        elif name == "zeros":
            tree["accessors"].append({"componentType": 5126, "count": _count(chance, 3, 12), "type": "MAT4"})
        elif name == "scenes":
            tree["scenes"][0]["nodes"] = [chance.randrange(len(tree["nodes"])) for _ in range(n)]
        elif name == "nodes":
            tree["nodes"] += [{"mesh": 0, "children": [chance.randrange(n) for _ in range(2)]} for _ in range(n)]
        elif name == "meshes":
            tree["meshes"][0]["primitives"] += tree["meshes"][0]["primitives"][:1] * min(n, 20_000)
        else:
            tree[name] += tree[name][:1] * n
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(data), 0x004E4942) + data
    path = folder / "mesh.glb"
    path.write_bytes(struct.pack("<III", 0x46546C67, 2, 12 + len(chunks)) + chunks)
    return path


def _counted_mesh(chance: random.Random, folder: Path) -> Path:
    """A mesh file whose header tells a number that the file does not hold, or one of very many parts."""
    n, m = _count(chance, 5, 12), _count(chance, 3, 4.7)
    xyz = "property float x\nproperty float y\nproperty float z\n"
    faces = f"element face {n}\nproperty list uint int vertex_indices\nend_header\n"
    facet = "facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n"
    name, data = chance.choice(
        (
            ("m.ply", f"ply\nformat ascii 1.0\nelement vertex {n}\n{xyz}{faces}0 0 0\n"),
            ("m.ply", f"ply\nformat binary_little_endian 1.0\nelement vertex {n}\n{xyz}{faces}" + 100 * "\xff"),
            ("m.off", f"OFF\n{n} {n} 0\n0 0 0\n"),
            ("m.stl", "h" * 80 + "\xff\xff\xff\x0f" + "\0" * 50),
            ("m.stl", f"solid s\n{facet}endsolid s\n" * m),
            ("m.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\n" + "".join(f"usemtl m{i}\nf 1 2 3\n" for i in range(m))),
            ("m.obj", f"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 {n}\n"),
            ("m.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf " + "1 2 3 " * 20 * m),
        )
    )
    (folder / name).write_bytes(data.encode("latin-1"))
    return folder / name


def _archive(chance: random.Random, folder: Path) -> Path:
    """An archive that unpacks to much, or holds a file that copies itself."""
    path = folder / f"mesh{chance.choice(('.zip', '.3mf', '.3dxml', '.zae'))}"
    inside = "3D/3dmodel.model" if path.suffix == ".3mf" else chance.choice(("a.stl", "a.obj", "Manifest.xml", "a.dae"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        if path.suffix == ".3mf" and chance.random() < 0.6:
            archive.writestr(inside, _doubled(chance.randint(5, 60)))
        else:
            with archive.open(inside, "w") as file:
                for _ in range(chance.randint(1, 400)):
                    file.write(bytes(2**20))
    return path


def _doubled(levels: int) -> str:
    """The model of a 3mf file whose objects each consist of two of the one before."""
    corners = "".join(f'<vertex x="{x}" y="{y}" z="0"/>' for x, y in ((0, 0), (1, 0), (0, 1)))
    mesh = f'<mesh><vertices>{corners}</vertices><triangles><triangle v1="0" v2="1" v3="2"/></triangles></mesh>'
    objects = [f'<object id="0">{mesh}</object>']
    for i in range(1, levels):
        objects.append(
            f'<object id="{i}"><components>{2 * f"""<component objectid="{i - 1}"/>"""}</components></object>'
        )
    space = "http://schemas.microsoft.com/3dmanufacturing/core/2015/02"
    return f'<model xmlns="{space}"><resources>{"".join(objects)}</resources><build><item objectid="{levels - 1}"/></build></model>'


# --- paths --------------------------------------------------------------------------------------------------------------

SECRET = "0.1234567890123"
"""Number in files that robot files must not reach: it must not come back."""


def _path(chance: random.Random, folder: Path) -> Path:
    """A robot that names files outside of its tree, FIFOs, devices or other machines."""
    robot = folder / "a" / "b" / "c" / "d" / "robot"
    for place in (robot, folder / "private"):
        place.mkdir(parents=True, exist_ok=True)
    _text(folder / "private" / "part.xml", f"<mujocoinclude><option timestep='{SECRET}'/></mujocoinclude>")
    _text(folder / "private" / "m.obj", f"v 0 0 {SECRET}\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    os.mkfifo(robot / "pipe.obj")
    os.mkfifo(robot / "pipe.xml")
    (robot / "null.obj").symlink_to("/dev/zero")
    (robot / "maps.obj").symlink_to("/proc/self/maps")
    up = "../" * chance.randint(5, 12)
    ending = chance.choice(("xml", "obj"))
    file = {"xml": "part.xml", "obj": "m.obj"}[ending]
    name = chance.choice(
        (
            *(
                f"{folder}/private/{file}",
                f"file://{folder}/private/{file}",
                f"../../../../../private/{file}",
                f"x/../../../../../../private/{file}",
            ),
            *(
                f"package://robot/../../../../../private/{file}",
                f"{up}{str(folder)[1:]}/private/{file}",
                f"{robot}/../../../../../private/{file}",
            ),
            *(
                f"pipe.{ending}",
                f"./pipe.{ending}",
                "null.obj",
                "maps.obj",
                "/dev/zero",
                "/dev/tty",
                "/proc/self/mem",
                "/proc/kmsg",
            ),
            *(
                "//host.invalid/share/m.obj",
                r"\\host.invalid\share\m.obj",
                "http://host.invalid/m.obj",
                "file:////host.invalid/m.obj",
            ),
        )
    )
    if chance.random() < 0.5:
        shape = f"<geometry><mesh filename={quoteattr(name)}/></geometry>"
        return _text(robot / "robot.urdf", f'<robot name="r"><link name="a"><visual>{shape}</visual></link></robot>')
    element = (
        f"<include file={quoteattr(name)}/>"
        if ending == "xml"
        else f'<asset><mesh name="m" file={quoteattr(name)}/></asset>'
    )
    world = "" if ending == "xml" else '<geom type="mesh" mesh="m"/>'
    return _mjcf(robot, element, world)


def _text(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


KINDS: dict[str, tuple[str, Callable[[random.Random, Path], Path]]] = {
    "trees": ("URDF: trees of up to 30,000 links, mimic joints", _tree_urdf),
    "digits": ("URDF: numbers of up to 300,000 digits", _digits_urdf),
    "texts": ("URDF: long declarations, comments, references", _text_urdf),
    "copies": ("MJCF: nested, included and attached copies", _copies_mjcf),
    "sizes": ("MJCF: sizes, height fields, textures, composites", _sizes_mjcf),
    "slow": ("MJCF: ranges of muscles, hulls", _slow_mjcf),
    "gltf": ("glTF: counts, copies, views", _gltf),
    "counts": ("PLY, OFF, STL, OBJ: counts and parts", _counted_mesh),
    "archives": ("zip, 3mf and others", _archive),
    "paths": ("files outside of the tree, FIFOs, devices, networks", _path),
}
"""Kind -> what it is, and what writes such a file."""


@dataclass(frozen=True)
class Ending:
    """The end of a process that has read a file."""

    result: str
    """"answer", "error", or what is wrong."""
    detail: str
    seconds: float
    mb: float

    @property
    def sound(self) -> bool:
        return self.result in ("answer", "error") and self.seconds < MOST_SECONDS and self.mb < MOST_MB


def read_case(kind: str, seed: int) -> Ending:
    """Write a hostile file, and read it in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        path = KINDS[kind][1](random.Random(f"{kind} {seed}"), Path(name))
        with environment(COSTATE_MAX_READ_SECONDS=str(SECONDS), COSTATE_MAX_READ_MEMORY_MB=str(MEMORY_MB)):
            result = Path(name) / "ending.json"
            child = Child(lambda: result.write_text(json.dumps(_read(path))))
        begun = time.monotonic()
        while not _ended(child):
            if time.monotonic() - begun > STUCK or cpu_seconds(child.process) > 4 * MOST_SECONDS:
                child.kill()
                return Ending("hang", path.name, time.monotonic() - begun, 0.0)
        words = child.words()
        if child.code:
            return Ending("crash", f"{child.code}: {words[-300:]}", 0.0, 0.0)
        return Ending(*json.loads(result.read_text()))


def _ended(child: Child) -> bool:
    if child.code is None:
        process, status, _ = os.wait4(child.process, os.WNOHANG)
        if process:
            child.code = os.waitstatus_to_exitcode(status)
        else:
            time.sleep(0.01)
    return child.code is not None


def _read(path: Path) -> tuple[str, str, float, float]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result, detail = _answer(path)
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
    return result, detail, seconds, (max(own.ru_maxrss - before, others.ru_maxrss)) / 1024


def _answer(path: Path) -> tuple[str, str]:
    output = io.StringIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if path.suffix not in (".urdf", ".xml"):
                print(load_triangles(path)[0].shape, file=output)
            else:
                model = load_model(path)
                shapes = [s for link in model.links for s in (*link.visuals, *link.collisions) if s.kind == "mesh"]
                print(
                    len(model.links), [load_triangles(s.mesh_file())[0] for s in shapes[:1]], model.physics, file=output
                )
    except (ValueError, OSError) as error:
        clear = len(str(error)) > 20
        return ("error" if clear else "unclear error"), str(error)[:300]
    except Exception as error:
        return "unclear error", f"{type(error).__name__}: {str(error)[:300]}"
    return ("reached a secret" if SECRET[:8] in output.getvalue() else "answer"), output.getvalue()[:100]


def hostile(cases: int, seed: int) -> tuple[Table, int]:
    """Read so many files of each kind."""
    rows, wrong = [], 0
    for kind, (title, _) in KINDS.items():
        endings = [read_case(kind, seed * 1_000_003 + k) for k in track(range(cases), title)]
        bad = [e for e in endings if not e.sound]
        for ending in bad:
            print(f"{kind}: {ending}", flush=True)
        wrong += len(bad)
        answers = sum(e.result == "answer" for e in endings)
        errors = sum(e.result == "error" for e in endings)
        worst = max(e.seconds for e in endings), max(e.mb for e in endings)
        rows.append((title, len(endings), answers, errors, round(worst[0], 1), round(worst[1]), len(bad)))
    note = (
        "Files made at random (`--seed`), each read in a process of its own with COSTATE_MAX_READ_SECONDS="
        f"{SECONDS} and COSTATE_MAX_READ_MEMORY_MB={MEMORY_MB}. Reading must end in an answer or a clear error, within "
        f"{MOST_SECONDS:.0f} s of processor time and {MOST_MB:.0f} MB, and nothing may come back from outside of a robot's tree. "
        "Seconds and MB are those of the worst case, with the processes that it starts."
    )
    columns = ("", "read", "an answer", "a clear error", "most seconds", "most MB", "wrong")
    return Table("Hostile files", columns, tuple(rows), note), wrong
