# %% [markdown]
# # Identify from a log
#
# A robot file rarely describes the real robot exactly. Here a UR5 carries a load of 1.5 kg that is not in its file.

# %%
import numpy as np
import torch

import costate as cs

torch.set_default_dtype(torch.float64)
truth = cs.load_robot("ur5")
truth.learn("tool0", "mass", cs.params.Positive(init=1.5))

# %% [markdown]
# Design a motion that excites all parameters, and record it, with noise on the torques:

# %%
motion = cs.excite("ur5", iterations=5)
t = np.arange(0, motion.period, 0.01)
q, v, a = (torch.from_numpy(x) for x in motion.at(t))
noise = 0.1 * torch.randn(len(t), 6, generator=torch.Generator().manual_seed(0))
tau = truth.inverse_dynamics(q, v, a).detach() + noise

# %%
log = {"t": t, "q": q.numpy(), "v": v.numpy(), "a": a.numpy(), "tau": tau.numpy()}
result = cs.identify("ur5", log)
print(result.summary())

# %% [markdown]
# The identified robot predicts the torques; the robot of the file does not.

# %%
given = cs.load_robot("ur5").inverse_dynamics(q, v, a)
result.save_urdf("identified.urdf")
identified = cs.load_robot("identified.urdf").inverse_dynamics(q, v, a)
before, after = ((tau - x).square().mean(0).sqrt() for x in (given, identified))
for joint, x, y in zip(truth.joint_names, before, after, strict=True):
    print(f"{joint:<22}{x:8.3f} N m  -> {y:6.3f} N m")
assert (after < 0.2).all()
