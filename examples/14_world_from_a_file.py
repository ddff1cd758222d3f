"""A world from a file: gymnasium's walker in one line, a second of it for a batch, a gradient, and MuJoCo beside it."""

from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import torch

import costate as cs
from costate.report import Report

BATCH = 32
torch.set_default_dtype(torch.float64)
torch.manual_seed(0)

file = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "walker2d.xml"
world = cs.load_world(file)  # floor, joints, motors, contact, integrator and time step are the file's
print(world)

# One second under random controls, and how they should change for the walkers to get further.
steps = round(1.0 / world.dt)
controls = (0.3 * torch.randn(steps, BATCH, world.nu)).requires_grad_()
states = world.rollout(world.initial_state(batch=BATCH), controls)
distance = states[-1, :, 0]
(gradient,) = torch.autograd.grad(distance.sum(), controls)
print(f"after {steps} steps the walkers are at {distance.mean():.2f} m, on average")
print(f"gradient of the distance by the first control of the first one [m]: {gradient[0, 0].numpy().round(4)}")

# The same second in MuJoCo, for the first walker.
model = mujoco.MjModel.from_xml_path(str(file))  # pyright: ignore[reportAttributeAccessIssue]
model.opt.tolerance, model.opt.iterations = 0.0, 100
data = mujoco.MjData(model)  # pyright: ignore[reportAttributeAccessIssue]
theirs = [np.concatenate([data.qpos, data.qvel])]
for u in controls[:, 0].detach().numpy():
    data.ctrl[:] = u
    mujoco.mj_step(model, data)  # pyright: ignore[reportAttributeAccessIssue]
    theirs.append(np.concatenate([data.qpos, data.qvel]))
errors = np.abs(states[:, 0].detach().numpy() - np.array(theirs)).max(1)
print(f"difference from MuJoCo after 1, 10 and {steps} steps: {errors[1]:.0e}, {errors[10]:.0e}, {errors[-1]:.0e}")

# What was made in Python is saved in the same way as it is loaded.
out = Path("out/14_world_from_a_file")
world.save(out / "world.json")
again = cs.load_world(out / "world.json")
assert torch.equal(again.step(states[10], controls[10]), world.step(states[10], controls[10]))

cs.render(world, states[:, :6].detach(), out.with_suffix(".png"), size=(640, 400))
report = Report("Walker")
report.replay(world, states[:, :4].detach())
report.save(out.with_suffix(".html"))
print(f"wrote {out}.png, {out}.html and {out}/world.json")
assert errors[10] < 1e-10, "ten steps agree to rounding; later ones part as chaos lets rounding grow"
