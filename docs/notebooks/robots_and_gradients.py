# %% [markdown]
# # Robots and gradients
#
# Load a robot, look at it, and differentiate what it computes.

# %%
import torch

import costate as cs

torch.set_default_dtype(torch.float64)
robot = cs.load_robot("panda")
robot

# %% [markdown]
# A notebook shows a robot as a picture with a table of its joints. Its functions take batches: a thousand configurations, and
# the position of the hand in each.

# %%
q = robot.random_configuration(1000, seed=0)
hand = robot.forward_kinematics(q, "panda_hand").position
print(hand.shape, "the highest is", f"{hand[:, 2].max():.2f} m above the base")

# %% [markdown]
# How much does the torque that holds the arm against gravity change with each joint? The Jacobian of a function is one call.

# %%
slope = torch.func.vmap(torch.func.jacrev(robot.gravity_torques))(q)  # (1000, nv, nq)
print("largest slope [N m/rad] by joint of the torque:", [round(x, 1) for x in slope.abs().amax((0, 2)).tolist()])

# %% [markdown]
# To reach a point, descend along the gradient of the distance. 64 arms move to the same point from different configurations.

# %%
target = torch.tensor([0.4, 0.2, 0.5])
path = [q[:64].clone()]
for _ in range(60):
    x = path[-1].clone().requires_grad_()
    off = robot.forward_kinematics(x, "panda_hand").position - target
    (g,) = torch.autograd.grad(off.square().sum(), x)
    path.append((x - 0.4 * g).detach())
left = (robot.forward_kinematics(path[-1], "panda_hand").position - target).norm(dim=-1)
print(f"median distance {1000 * left.median():.1f} mm")
assert left.median() < 0.05

# %% [markdown]
# A motion is shown as a replay: rotate it with the mouse, pause it, step through it.

# %%
from costate.draw.recording import record

record(robot, torch.stack(path)[:, :4], dt=1 / 30)
