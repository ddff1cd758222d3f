# %% [markdown]
# # Soft bodies
#
# A block of jelly slides over a floor. How far it gets depends on its stiffness, and the gradient says how.

# %%
import torch

from costate.continuum import MpmGrid, MpmModel, SoftBody
from costate.continuum.mpm import fill
from costate.report import Report

dx = 1 / 32
points = fill.box((0.2, 0.12), (0.4, 0.32), dx / 2)  # (particles, 2) [m]
jelly = SoftBody(points, dx / 2, "neo_hookean", {"E": 5e3, "nu": 0.3}, name="jelly")
model = MpmModel(MpmGrid((32, 32), dx), [jelly], dt=2e-3, sides={"-y": 0.3}, segment=5)

# %%
E = torch.tensor(5e3, dtype=torch.float64, requires_grad=True)  # Young's modulus [Pa]
thrown = model.start(v=torch.tensor([1.0, -1.0], dtype=torch.float64))
history = model.run(150, thrown, parameters={"E": E})
way = history.x[-1, :, 0].mean() - points[:, 0].mean()
(slope,) = torch.autograd.grad(way, E)
further = 0.01 * E.detach() * slope
print(f"it slides {way:.3f} m; with 1 % more stiffness, {1e6 * further:+.1f} micrometres farther")

# %% [markdown]
# Check the gradient by a finite difference.


# %%
def way_of(E):
    return model.run(150, thrown, parameters={"E": E}).x[-1, :, 0].mean() - points[:, 0].mean()


difference = (way_of(E.detach() + 0.05) - way_of(E.detach() - 0.05)) / 0.1
print(f"gradient {slope:.6e}, difference {difference:.6e} m/Pa")
assert abs(slope - difference) < 1e-3 * abs(difference)

# %%
report = Report("A block of jelly", "0.3 s")
report.particles(history.times, history.x.detach(), points[:, 1], title="height at the start", unit="m")
report
