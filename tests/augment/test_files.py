"""Networks as files: what is read back is what was written, and damage is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import costate as cs


def robot() -> cs.Robot:
    made = cs.load_robot("pendulum2").double()
    options = {"hidden": (4, 3), "activation": "elu", "constraints": "odd", "scale": 3.0}
    made.augment(
        "joint_torque", on="joint_1", inputs=["speed", "speed:joint_2"], input_scales={"speed": 2.0}, **options
    )
    made.augment("drag", on=["link_1", "link_2"], constraints="dissipative", replace=True, name="water")
    for network in made.networks.values():
        network.set_vector(network.starts(2, seed=5)[1] + 0.1)
    return made


def test_a_robot_and_its_world_are_read_back(tmp_path: Path) -> None:
    one, other = robot(), cs.load_robot("pendulum2")
    one.save_networks(tmp_path / "nets")
    assert {p.name for p in tmp_path.iterdir()} == {"nets.json", "nets.safetensors"}
    assert list(other.load_networks(tmp_path / "nets.json")) == list(one.networks)
    q, v = torch.tensor([0.2, 0.4], dtype=torch.float64), torch.tensor([0.6, -0.5], dtype=torch.float64)
    assert torch.equal(one.bias_forces(q, v), other.bias_forces(q, v))
    world, plain = (cs.World([r], contact=None) for r in (one, cs.load_robot("pendulum2")))
    world.save_networks(tmp_path / "in_world")
    assert list(plain.load_networks(tmp_path / "in_world")) == [f"pendulum2/{name}" for name in one.networks]
    state = torch.cat([q, v])
    assert torch.equal(plain.step(state), world.step(state))


def test_damage_is_named(tmp_path: Path) -> None:
    one = robot()
    with pytest.raises(ValueError, match="no network to save"):
        cs.load_robot("pendulum2").save_networks(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="expected the two files"):
        one.load_networks(tmp_path / "none")
    one.save_networks(tmp_path / "nets")
    fresh = cs.load_robot("pendulum2")
    note = json.loads((tmp_path / "nets.json").read_text())

    def rewritten(**changes) -> None:
        (tmp_path / "nets.json").write_text(json.dumps(note | changes))

    rewritten(format="other")
    with pytest.raises(ValueError, match="not a file of networks"):
        fresh.load_networks(tmp_path / "nets")
    rewritten(version=99)
    with pytest.raises(ValueError, match="of version 99"):
        fresh.load_networks(tmp_path / "nets")
    rewritten(networks=[note["networks"][0] | {"name": "unknown"}])
    with pytest.raises(ValueError, match="is damaged"):
        fresh.load_networks(tmp_path / "nets")
    rewritten(networks=[note["networks"][0] | {"on": ["elbow"]}])
    with pytest.raises(ValueError, match="has no joint 'elbow'"):
        fresh.load_networks(tmp_path / "nets")
    assert fresh.networks == {}


def test_a_world_is_saved_with_its_networks_and_a_urdf_says_that_it_is_not(tmp_path: Path) -> None:
    one = robot()
    with pytest.warns(UserWarning, match="networks are not in the file"):
        one.save_urdf(tmp_path / "robot.urdf")
    world = cs.World([one], contact=None, parameters=["mass:pendulum2/link_2"])
    world.save(tmp_path / "world.json")
    again = cs.load_world(tmp_path / "world.json")
    assert again.setup.parameters == world.setup.parameters
    state = torch.tensor([0.2, 0.4, 0.6, -0.5], dtype=torch.float64)
    assert torch.equal(again.step(state), world.step(state))
