# %% [markdown]
# # A world with contact
#
# Drop a quadruped, throw a ball, and differentiate both motions.

# %%
import matplotlib.pyplot as plt
import torch

import costate as cs
from costate.draw.recording import record

torch.set_default_dtype(torch.float64)
dog = cs.load_robot("laikago")
world = cs.World(
    [dog],
    scenery=[cs.Static("ground", cs.shapes.plane())],
    actuators=cs.PositionServo(300, 10),
    collide=lambda a, b: "toe" in a or "toe" in b,
    dt=0.005,
)
world

# %%
start = world.initial_state()
start[2] += 0.2
states = world.rollout(start, start[7:19].repeat(120, 1))
record(world, states)

# %% [markdown]
# The forces under the feet, from the contact solver:

# %%
forces = world.contacts(states[:-1], start[7:19].expand(120, -1)).forces.sum(-1)
plt.plot(torch.arange(120) * world.dt, forces)
plt.xlabel("time [s]")
plt.ylabel("force of the ground [N]")
plt.show()

# %% [markdown]
# Now a ball is thrown at a wall. How fast must it be so that, after the bounce, it ends at x = 0.5 m? The derivative goes
# through the impact.

# %%
ball = cs.Body("ball", [cs.shapes.sphere(0.05)], mass=0.2)
wall = cs.Static("wall", cs.shapes.box((0.1, 2.0, 2.0)), position=(2.0, 0.0, 1.0))
room = cs.World(bodies=[ball], scenery=[wall], contact=cs.Hard(friction=0.0, restitution=0.8), dt=0.01)
speed = torch.tensor(3.0, requires_grad=True)
for _ in range(20):
    state = room.initial_state()
    state[2] = 1.5
    state = torch.cat([state[:7], speed.reshape(1), state[8:]])
    x = room.rollout(state, steps=110)[-1, 0]
    (slope,) = torch.autograd.grad(x, speed)
    speed = (speed - (x - 0.5) / slope).detach().requires_grad_()  # Newton's method
print(f"throw it at {speed:.3f} m/s: it ends at x = {x:.4f} m, and dx/dspeed = {slope:.3f} s")
assert abs(x - 0.5) < 1e-6
