"""Genesis on the CPU: an environment per sample; gradients of roll-outs by its differentiable mode."""

# pyright: reportMissingImports=false
from __future__ import annotations

from typing import Any

import genesis as gs
import numpy as np
import torch
from worker import Array, Case, Job, serve

torch.set_num_threads(1)
gs.init(backend=gs.cpu, precision="64", logging_level="error")


class Rollout:
    """A scene and what is done to it."""

    def __init__(self, job: Job, gradients: bool):
        self.job = job
        self.scene = gs.Scene(
            sim_options=gs.options.SimOptions(dt=job.dt, requires_grad=gradients),
            rigid_options=gs.options.RigidOptions(enable_self_collision=False, enable_joint_limit=False),
            show_viewer=False,
        )
        material = gs.materials.Rigid(friction=job.friction)
        self.scene.add_entity(gs.morphs.Plane(), material=material)
        morph = gs.morphs.URDF(file=job.free_urdf, pos=(0.0, 0.0, job.height), fixed=False)
        self.robot = self.scene.add_entity(morph, material=material)
        self.scene.build(n_envs=job.batch)
        self.dofs = [self.robot.get_joint(name).dofs_idx_local[0] for name in job.joints]
        n = len(job.joints)
        self.robot.set_dofs_stiffness([job.stiffness] * n, self.dofs)
        self.robot.set_dofs_damping([job.damping] * n, self.dofs)
        self.rest = torch.tensor(job.rest, dtype=torch.float64)
        # Its springs pull to zero: a constant torque moves their rest.
        self.lift = job.stiffness * self.rest

    def run(self, controls: Any) -> Any:
        """Heights of the trunk at the end, (batch,)."""
        self.scene.reset()
        self.robot.set_dofs_position(self.rest.expand(self.job.batch, -1), self.dofs)
        for u in controls:
            self.robot.control_dofs_force(u + self.lift, self.dofs)
            self.scene.step()
        return self.robot.get_state().pos[:, 2]


def steps(job: Job) -> Case:
    rollout, u = Rollout(job, False), torch.from_numpy(job.controls())
    return Case(lambda: rollout.run(u), job.batch * job.steps, lambda z: z[:1].detach().numpy())


def rollout_gradient(job: Job) -> Case:
    rollout = Rollout(job, True)
    rows = [torch.from_numpy(u).requires_grad_() for u in job.controls()]

    def run() -> tuple[Any, list[Any]]:
        z = rollout.run(rows)
        return z.detach(), list(torch.autograd.grad(z.sum(), rows))

    def values(found: tuple[Any, list[Any]]) -> Array:
        return np.array([found[0][0].item(), torch.stack(found[1])[:, 0].norm().item()])

    return Case(run, job.batch * job.steps, values)


if __name__ == "__main__":
    made = (steps, rollout_gradient)
    serve(("genesis-world", "quadrants", "torch"), "float64", {make.__name__: make for make in made})
