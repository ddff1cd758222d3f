"""Results of robots and worlds of every kind, bit for bit: what a change that means to change nothing is checked with.

    python benchmarks/study_bits.py --record before.json
    python benchmarks/study_bits.py --compare before.json

Every case is computed with its gradients in float64 and float32; the file holds a checksum and a short sum for each. Only public
names are used, so that the same script runs before and after the package was rearranged.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

import costate as cs
from costate import PGS, Body, Compliant, Hard, Newton, Static, World, shapes

Tensor = torch.Tensor
Case = Callable[[torch.dtype], dict[str, Tensor]]
DTYPES = {"float64": torch.float64, "float32": torch.float32}

GROUND = Static("ground", shapes.plane(rpy=(0.05, -0.1, 0.3)))
CONTACTS = {
    "hard": Hard(friction=0.4),
    "hard bounce": Hard(friction=0.4, restitution=0.6),
    "pgs": PGS(friction=0.4),
    "pgs cone": PGS(friction=0.4, cone="cone", correction="split"),
    "pgs bounce": PGS(friction=0.4, restitution=0.6),
    "pgs warm": PGS(friction=0.4, warm_start=True, sweeps=10),
    "compliant": Compliant(friction=0.4, smoothing=2e-3),
    "newton": Newton(friction=0.4, cone="pyramidal"),
    "newton elliptic": Newton(friction=0.4, cone="elliptic", condim=6),
    "none": None,
}
INTEGRATORS = ("semi_implicit", "explicit", "implicit", "rk4")
ACTUATORS = {
    "torque": cs.Torque(limit=2.0),
    "velocity servo": cs.VelocityServo(5.0),
    "position servo": cs.PositionServo(20.0, 1.0),
    "motor": cs.Motor(gear=2.0, armature=0.01),
    "dc motor": cs.DCMotor(1.0, 10.0, gear=2.0),
    "affine": cs.Affine(gain=2.0, stiffness=3.0, damping=0.2, torques=(-1.0, 1.0)),
}
TETRA = "v 0 0 0\nv 0.2 0 0\nv 0 0.25 0\nv 0 0 0.3\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def draw(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    return torch.tensor(scale * np.random.default_rng([seed, *shape]).standard_normal(shape))


def with_gradients(values: dict[str, Tensor], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Values, and the gradients of a random sum of them."""
    total = torch.zeros((), dtype=torch.float64)
    for k, x in enumerate(values.values()):
        if x.requires_grad:
            total = total + (x.double() * draw(*x.shape, seed=k)).sum()
    found = torch.autograd.grad(total, list(inputs.values()), allow_unused=True)
    gradients = {f"d/d {n}": g for n, g in zip(inputs, found, strict=True) if g is not None}
    return {n: x.detach() for n, x in (values | gradients).items()}


def robot_case(name: str) -> Case:
    def run(dtype: torch.dtype) -> dict[str, Tensor]:
        robot = cs.load_robot(name)
        q = torch.tensor(np.asarray(robot.random_configuration(5, generator=torch.Generator().manual_seed(1)))).to(
            dtype
        )
        v, a = (draw(5, robot.nv, seed=s).to(dtype) for s in (2, 3))
        for x in (q, v, a):
            x.requires_grad_()
        tip = robot.link_names[-1]
        values = {
            "forward": robot.forward_dynamics(q, v, a),
            "inverse": robot.inverse_dynamics(q, v, a),
            "mass": robot.mass_matrix(q),
            "bias": robot.bias_forces(q, v),
            "position": robot.forward_kinematics(q, tip).position,
            "jacobian": robot.jacobian(q, tip),
        }
        return with_gradients(values, {"q": q, "v": v, "a": a})

    return run


def moved(world: World, dtype: torch.dtype, steps: int = 12, batch: int = 3, scale: float = 0.1) -> dict[str, Tensor]:
    """A roll-out from states near the initial one, a linearisation, contacts and energy, with gradients in everything."""
    state = world.initial_state(batch)
    state[:, world.nq :] += draw(batch, world.nv, seed=5, scale=5 * scale)
    state = state.to(dtype).requires_grad_()
    controls = draw(steps, batch, world.nu, seed=6, scale=scale).to(dtype).requires_grad_()
    params = {p: torch.tensor(world.setup.default(p)).to(dtype).requires_grad_() for p in world.setup.parameters}
    states = world.rollout(state, controls, params=params)
    values = {"states": states, "step": world.step(state, controls[0], params=params)}
    values["energy"] = world.energy(states[-1], params=params)
    if world.setup.scene.pairs:
        found = world.contacts(states[-1], controls[0], params=params)
        values |= {"gaps": world.gaps(states[-1], params=params), "forces": found.forces, "friction": found.friction}
        values["points"] = found.points
    A, B = world.linearize(state, controls[0], params=params)
    values |= {"A": A.detach(), "B": B.detach()}
    return with_gradients(values, {"state": state, "controls": controls, **params})


def world_case(make: Callable[[], World], **options: float) -> Case:
    return lambda dtype: moved(make(), dtype, **options)  # type: ignore[arg-type]


def ball() -> Body:
    return Body("ball", [shapes.sphere(0.1)], 0.7, pose=cs.model.Transform(translation=np.array([0.4, 0.1, 0.13])))


def landing(contact, integrator: str, substeps: int = 2) -> World:
    """A two-link arm beside a ball that slides and lands."""
    has = [p for p in ("friction", "restitution", "stiffness") if hasattr(contact, p)]
    return World(
        [cs.load_robot("two_link")], [ball()], [GROUND], contact=contact, integrator=integrator, dt=0.01, substeps=substeps,
        parameters=[*has, "gravity", "mass:ball/body"],
    )  # fmt: skip


def dropped(contact, shape, still=GROUND) -> World:
    pose = cs.model.Transform(translation=np.array([0.01, 0.02, 0.12]))
    body = Body("body", [shape], 1.0, inertia=np.diag([4e-3, 6e-3, 5e-3]), pose=pose)
    return World(bodies=[body], scenery=[still], contact=contact, dt=0.004, parameters=["mass:body/body"])


def dog(contact, **more) -> World:
    return World(
        [cs.load_robot("laikago")], scenery=[Static("ground", shapes.plane())], contact=contact, dt=0.002,
        actuators=cs.PositionServo(300, 10), collide=lambda a, b: "toe" in a or "toe" in b, **more,
    )  # fmt: skip


def pile(warm: bool = False) -> World:
    rng = np.random.default_rng(3)
    bodies = [
        Body(
            f"b{k}",
            [shapes.box((0.1, 0.12, 0.09)) if k % 2 else shapes.sphere(0.06)],
            0.5 + 0.1 * k,
            pose=cs.model.Transform(translation=np.array([*(0.02 * rng.standard_normal(2)), 0.07 + 0.11 * k])),
        )
        for k in range(4)
    ]
    contact = PGS(sweeps=8, warm_start=warm, restitution=0.3)
    return World(bodies=bodies, scenery=[GROUND], contact=contact, dt=0.01, substeps=2, parameters=["friction"])


def tied(contact) -> World:
    arm = cs.load_robot("pendulum3")
    joints = arm.joint_names
    name = arm.name
    tendon = cs.FixedTendon(
        "cable", {f"{name}/{joints[0]}": 0.05, f"{name}/{joints[1]}": -0.03}, stiffness=40.0, damping=1.0
    )
    tip = f"{name}/{arm.link_names[-1]}"
    return World([arm], contact=contact, dt=0.005, tendons=[tendon], constraints=[cs.Connect(tip, "world")])


def acting(actuator) -> World:
    return World([cs.load_robot("two_link")], contact=PGS(), actuators=actuator, dt=0.01)


def insertion_world() -> World:
    from costate.tasks.insertion import Insertion, InsertionOptions

    return Insertion(InsertionOptions()).world


def from_file(name: str) -> World:
    import gymnasium

    path = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / name
    return World([cs.load_robot(path)], contact=Newton(), self_collision=True, actuators="file")


def smoke(dtype: torch.dtype) -> dict[str, Tensor]:
    """Three steps of smoke on a small grid: kernels over fields, with a linear solve in each step."""
    model = cs.continuum.FluidModel(cs.continuum.Grid((8, 8), cell=0.125), dt=0.1, steps=3, tolerance=1e-6)
    velocity, density = draw(2, 8, 8, seed=7).to(dtype).requires_grad_(), draw(8, 8, seed=8).to(dtype).requires_grad_()
    found = model.run(velocity, density)
    values = {"velocity": found.velocity, "smoke": found.smoke}
    return with_gradients(values, {"start": velocity, "density": density})


def cases(folder: Path) -> Iterator[tuple[str, Case]]:
    for name in (
        "ur5",
        "panda",
        "laikago",
        "iiwa7",
        "ant",
        "racecar",
        "allegro_hand",
        "fetch_arm",
        "pendulum3",
        "two_link",
    ):
        yield f"robot {name}", robot_case(name)
    for name, contact in CONTACTS.items():
        for integrator in INTEGRATORS:
            newton, hard = name.startswith("newton"), name.startswith(("hard", "pgs"))
            if (integrator == "rk4" and hard) or (integrator == "explicit" and newton):
                continue
            yield f"landing, {name}, {integrator}", world_case(lambda c=contact, i=integrator: landing(c, i))
    tetra = folder / "tetra.obj"
    tetra.write_text(TETRA)
    heights = 0.03 * np.sin(np.arange(12.0))[:, None] + np.zeros(12)
    solids = {
        "capsule": shapes.capsule(0.07, 0.2),
        "box": shapes.box((0.2, 0.3, 0.16)),
        "cylinder": shapes.cylinder(0.1, 0.24),
        "ellipsoid": shapes.ellipsoid((0.1, 0.15, 0.07)),
        "hull": shapes.mesh(tetra),
        "union": shapes.union(shapes.sphere(0.1), shapes.sphere(0.08, (0.1, 0, 0))),
    }
    statics = {
        "box": Static("table", shapes.box((0.6, 0.6, 0.1), (0, 0, -0.05))),
        "heights": Static("hills", shapes.heightfield(heights, (2.0, 2.0))),
        "difference": Static(
            "block", shapes.difference(shapes.box((0.5, 0.5, 0.2), (0, 0, -0.1)), shapes.cylinder(0.05, 0.5))
        ),
    }
    for name, solid in solids.items():
        yield f"{name} on ground, pgs", world_case(lambda s=solid: dropped(PGS(), s))
        yield f"{name} on ground, newton", world_case(lambda s=solid: dropped(Newton(cone="elliptic"), s))
    for name, still in statics.items():
        yield f"box on {name}, pgs", world_case(lambda s=still: dropped(PGS(), shapes.box((0.2, 0.3, 0.16)), s))
        yield (
            f"capsule on {name}, compliant",
            world_case(lambda s=still: dropped(Compliant(), shapes.capsule(0.07, 0.2), s)),
        )
    for name, actuator in ACTUATORS.items():
        yield f"actuator {name}", world_case(lambda a=actuator: acting(a), scale=1.0)
    for name in ("hard", "pgs", "compliant", "newton"):
        yield f"tendon and constraint, {name}", world_case(lambda c=CONTACTS[name]: tied(c))
    yield "laikago, pgs", world_case(lambda: dog(PGS()), scale=0.02)
    yield "laikago, pgs warm", world_case(lambda: dog(PGS(warm_start=True, sweeps=10), substeps=2), scale=0.02)
    yield "laikago, newton", world_case(lambda: dog(Newton()), scale=0.02)
    yield "pile", world_case(pile)
    yield "pile, warm", world_case(lambda: pile(True))
    yield "insertion", world_case(insertion_world, scale=0.02, steps=4)
    yield "smoke", smoke
    yield "hopper.xml", world_case(lambda: from_file("hopper.xml"), steps=4)
    yield "ant.xml", world_case(lambda: from_file("ant.xml"), steps=4)


def fingerprint(values: dict[str, Tensor]) -> dict[str, list]:
    found = {}
    for name, x in values.items():
        data = x.contiguous().numpy()
        found[name] = [hashlib.sha256(data.tobytes()).hexdigest()[:16], float(np.abs(data).sum())]
    return found


def main() -> int:
    torch.set_default_dtype(torch.float64)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="write the results to this file")
    parser.add_argument(
        "--compare", type=Path, help="compare with the results in this file; exit code 1 where one differs"
    )
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="cases whose name holds one of these texts"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, dict] = {}
    before = json.loads(options.compare.read_text()) if options.compare else {}
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, case in cases(Path(folder)):
            if not any(text in name for text in options.only):
                continue
            begun = time.perf_counter()
            try:
                found[name] = {kind: fingerprint(case(dtype)) for kind, dtype in DTYPES.items()}
            except Exception as error:  # a case that cannot run is a result, too
                found[name] = {"error": f"{type(error).__name__}: {error}"}
            text = f"{name}: {time.perf_counter() - begun:.1f} s"
            if name in before and before[name] != found[name]:
                different += 1
                text += f"  DIFFERS in {differences(before[name], found[name])}"
            if "error" in found[name]:
                text += "  " + found[name]["error"]
            print(text, flush=True)
            if options.record:
                options.record.write_text(json.dumps(found, indent=1))
    print(f"{len(found)} cases" + (f", {different} differ" if before else ""))
    return 1 if different else 0


def differences(before: dict, after: dict) -> str:
    if "error" in before or "error" in after:
        return f"{before.get('error', 'a result')} -> {after.get('error', 'a result')}"
    names = []
    for kind in before:
        for name, value in before[kind].items():
            other = after[kind].get(name)
            if other != value:
                names.append(f"{kind} {name} ({value[1]:.6g} -> {other[1] if other else float('nan'):.6g})")
    return "; ".join(names)


if __name__ == "__main__":
    sys.exit(main())
