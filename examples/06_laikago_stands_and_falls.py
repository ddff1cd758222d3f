"""A Laikago stands on position servos, is pushed, and falls when its motors are switched off.

While it stands, contact forces carry its weight. The gradient shows how much a push at each time displaces it."""

import os

import torch
import tyro

import costate as cs
from costate.report import Report

torch.set_default_dtype(torch.float64)
QUICK = bool(os.environ.get("COSTATE_QUICK"))
DT, STAND, FALL = 0.01, 100 if QUICK else 300, 100


def make_world(actuators: cs.PositionServo | cs.Torque) -> cs.World:
    """Make a world in which feet and trunk may touch the ground."""
    return cs.World(
        robots={"laikago": cs.load_robot("laikago")},
        scenery=[cs.Static("ground", cs.shapes.plane())],
        actuators=actuators,
        contact=cs.Hard(friction=0.7, joint_limits=False),
        collide=lambda a, b: "ground" in (a, b) and ("toe" in a or "chassis" in a),
        dt=DT,
        substeps=4,
    )


def main(out: str = "out") -> None:
    torch.manual_seed(0)
    standing, limp = make_world(cs.PositionServo(stiffness=300.0, damping=8.0)), make_world(cs.Torque())
    if not QUICK:
        print(standing.report())
    start = standing.initial_state()
    q, _ = standing.coordinates("laikago")
    pose = start[q][7:]  # joint angles of the home configuration

    # Stand: servos hold the pose during a push of 60 N to the side, which lasts a tenth of a second.
    push = torch.zeros(STAND, 6)
    push[STAND // 2 : STAND // 2 + 10, 1] = 60.0
    push.requires_grad_()
    states = standing.rollout(start, pose.expand(STAND, 12), wrenches={"laikago/chassis": push})
    (effect,) = torch.autograd.grad(states[-1, 1], push)
    contacts = standing.contacts(states[-1].detach(), pose)
    weight = 9.81 * standing.setup.scene.model.total_mass
    carried = float((contacts.forces * contacts.normals[..., 2]).sum())
    print(f"standing: height {states[-1, 2]:.3f} m, feet carry {carried:.1f} N of {weight:.1f} N")
    print(f"one newton more moves it sideways by {1e6 * effect[0, 1]:.1f} um if it acts in the first step,")
    print(f"and by {1e6 * effect[-1, 1]:.1f} um if it acts in the last one")

    # Fall: the same state without torques.
    fallen = limp.rollout(states[-1].detach(), steps=FALL)
    print(f"fallen: height {fallen[-1, 2]:.3f} m, lowest gap {limp.gaps(fallen).min() * 1e3:.2f} mm")

    whole = torch.cat([states.detach(), fallen])
    cs.render(standing, states[-1], f"{out}/06_laikago_stands_and_falls.png", size=(640, 400), contacts=True)
    page = Report("A Laikago stands and falls", f"the motors are switched off after {STAND * DT:g} s")
    scene = page.replay(standing, whole[::2], dt=2 * DT)
    page.plot({"trunk": whole[:, 2]}, torch.arange(len(whole)) * DT, title="Height [m]", x_label="s", follow=scene)
    print("wrote", page.save(f"{out}/06_laikago_stands_and_falls.html"))

    assert abs(carried / weight - 1) < 0.02, "the feet should carry the robot"
    assert states[-1, 2] > 0.2, "it should stand"
    assert fallen[-1, 2] < states[-1, 2] - 0.05, "it should fall"
    assert limp.gaps(fallen).min() > -0.02, "it should not sink into the ground"


if __name__ == "__main__":
    tyro.cli(main)
