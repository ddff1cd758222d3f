"""`costate augment WORLD MOTIONS`: put a network into the step of a world, fit it to motions, and find which inputs it needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

if TYPE_CHECKING:
    from costate.optimise.discovery import Motions


@dataclass(frozen=True)
class Options:
    world: Annotated[str, tyro.conf.Positional]
    """World file, MJCF or URDF file, or built-in robot."""
    motions: Annotated[Path, tyro.conf.Positional]
    """NPZ file with `states` (T + 1, B, nx) and perhaps `controls` (T, B, nu): B motions of T control steps."""
    quantity: str = "joint_torque"
    """Quantity that the network acts on: joint_torque, drag, actuator_force, friction_coefficient, ..."""
    on: tuple[str, ...] = ()
    """Joints, links or actuators that have it; none: all contacts."""
    inputs: tuple[str, ...] = ()
    """Inputs to choose from: speed, position, load, velocity, speed:JOINT, ...; none: those that the quantity has by itself."""
    replace: bool = False
    """Take the place of the quantity instead of adding to it."""
    hidden: tuple[int, ...] = (8,)
    """Sizes of the hidden layers, one or two."""
    activation: Literal["tanh", "elu", "softplus"] = "tanh"
    """Function between layers."""
    constraints: tuple[str, ...] = ()
    """Properties that the network has by construction: odd, monotone, non_negative, dissipative."""
    scale: float = 1.0
    """Unit of the network's outputs."""
    window: int = 5
    """Steps of a roll-out that is compared; motions are cut into pieces of it."""
    held_out: float = 0.3
    """Fraction of the motions to test on."""
    starts: int = 4
    """Number of starts for every penalty."""
    iterations: int = 300
    """Steps of every descent."""
    seed: int = 0
    """Seed of starts."""
    out: Path = Path("networks")
    """Files to write the network to: OUT.json and OUT.safetensors."""


def run(options: Options) -> None:
    """Fit, print the report, and write the network."""
    import torch

    from costate.optimise.discovery import DiscoverOptions, discover, motion_loss
    from costate.sim.files.load import load_world

    world = load_world(options.world)
    motions = read_motions(options.motions, world.nx, world.nu)
    count = motions.states.shape[1]
    tested = round(options.held_out * count)
    if not 0 < tested < count:
        raise ValueError(
            f"{options.motions} has {count} motions, of which {options.held_out:g} is {tested} to test on; expected some to fit "
            "and some to test: log more motions, or cut a long one into several"
        )
    world.augment(
        options.quantity,
        options.on or None,
        options.inputs or None,
        options.replace,
        hidden=options.hidden,
        activation=options.activation,
        constraints=options.constraints,
        scale=options.scale,
        seed=options.seed,
    )
    which = torch.arange(count) < count - tested
    fit, held_out = (motion_loss(world, motions.part(x).windows(options.window)) for x in (which, ~which))
    chosen = DiscoverOptions(iterations=options.iterations, starts=options.starts, seed=options.seed, progress=True)
    print(discover(world.networks, fit, held_out, chosen).report())
    world.save_networks(options.out)
    print(f"wrote {options.out}.json and {options.out}.safetensors")


def read_motions(file: Path, nx: int, nu: int) -> Motions:
    """Return the motions of an NPZ file, for a world with states (nx,) and controls (nu,)."""
    import numpy as np
    import torch

    from costate.core.readers.npz import read_npz
    from costate.optimise.discovery import Motions

    found = read_npz(file)
    if "states" not in found:
        raise ValueError(f"{file} has no 'states' (T + 1, B, {nx}): positions and velocities over time")
    states = torch.as_tensor(found["states"])
    if states.dim() != 3 or states.shape[-1] != nx or len(states) < 2:
        raise ValueError(f"{file}: states have shape {tuple(states.shape)}; expected (T + 1, B, {nx})")
    controls = torch.as_tensor(found.get("controls", np.zeros((len(states) - 1, states.shape[1], nu))))
    if controls.shape != (len(states) - 1, states.shape[1], nu):
        expected = (len(states) - 1, states.shape[1], nu)
        raise ValueError(f"{file}: controls have shape {tuple(controls.shape)}; expected {expected}")
    if not bool(torch.isfinite(states).all() and torch.isfinite(controls).all()):
        raise ValueError(f"{file} has numbers that are not finite: leave these motions out")
    return Motions(states, controls)
