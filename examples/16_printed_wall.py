"""Print a wall bead on bead: the temperature of the part as it grows, that of a thermocouple, and how both depend on the power.

    python examples/16_printed_wall.py

With COSTATE_QUICK=1 in the environment the wall has two layers instead of five.
"""

import os
import time

import torch

from costate.continuum import INCONEL_718, wall
from costate.continuum.heat.model import HeatModel
from costate.continuum.heat.process import Surroundings
from costate.draw.part.still import render_part
from costate.report import Report

torch.set_default_dtype(torch.float64)
LAYERS = 2 if os.environ.get("COSTATE_QUICK") else 5
POWER = 200.0
SENSOR = (0.0, -0.001, 0.0005)
OUT = "out/16_printed_wall"


def main() -> None:
    part = wall(length=0.02, height=0.001 * LAYERS)
    print(part)
    model = HeatModel(
        part.mesh, part.path, INCONEL_718, surroundings=Surroundings(base=300.0), sensors=[SENSOR], segment=2
    )
    power = torch.tensor(POWER, requires_grad=True)
    start = time.perf_counter()
    history = model.run(power)
    print(
        f"{model.steps} steps of {1e3 * model.dt:.1f} ms, compiled and computed in {time.perf_counter() - start:.1f} s"
    )

    # A thermocouple in the middle of the first layer: it is heated once more by every layer above.
    times = torch.as_tensor(model.timeline.times)
    reading = history.readings[:, 0]
    peak, when = reading.max(0)
    melting = INCONEL_718.solidus
    print(f"at the thermocouple: at most {peak:.0f} K at {times[when]:.2f} s, {reading[-1]:.0f} K at the end")

    # How its last reading depends on the power, and what a run with a little more power says.
    (gradient,) = torch.autograd.grad(reading[-1], power)
    with torch.no_grad():
        more, less = (model.run(power + d).readings[-1, 0] for d in (0.0005, -0.0005))
    difference = (more - less) / 0.001
    print(f"last reading by power: {gradient:.6f} K/W; by differences {difference:.6f} K/W")

    T = history.T.detach()
    report = Report("A printed wall", f"Inconel 718, {LAYERS} layers, {POWER:g} W")
    report.facts({"elements": len(part.mesh.elements), "hottest": f"{T.max():.0f} K", "K per W": float(gradient)})
    scene = report.part(part.mesh, history.times, T, path=part.path, limits=(300, 2000), play=True)
    report.plot(
        {"thermocouple": reading.detach()},
        x=times,
        title="Temperature in the first layer [K]",
        x_label="time [s]",
        levels={"begins to melt": melting},
        follow=scene,
    )
    print("wrote", report.save(f"{OUT}.html"))
    frame = int(0.7 * len(T))
    picture = render_part(
        part.mesh, history.times, T, f"{OUT}.png", path=part.path, limits=(300, 2000), frame=frame, size=(640, 400)
    )
    print("wrote", picture)
    assert abs(gradient - difference) < 1e-5 * abs(difference), "the gradient should agree with differences"
    assert T.min() > 299 and T.max() > melting, (
        "the laser should melt what it adds, and nothing should be colder than the air"
    )


if __name__ == "__main__":
    main()
