"""Newton on Warp, on the CPU: kinematics and SolverFeatherstone, its solver in joint coordinates, which its tape differentiates."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportIndexIssue=false
from typing import Any

import newton
import numpy as np
import warp as wp
from worker import CHECKED, Array, Case, Job, reordered, serve

wp.config.quiet = True
CONTACT = {"ke": 1e4, "kd": 3e2, "kf": 1e3}
"""Stiffness, damping and friction gain of its compliant contact, with which a Laikago stands at steps of 2 ms."""


class Robots:
    """A world per sample of the batch."""

    def __init__(self, job: Job, scene: bool = False, gradients: bool = False):
        one = newton.ModelBuilder(up_axis=newton.Axis.Z)
        one.default_shape_cfg = newton.ModelBuilder.ShapeConfig(mu=job.friction, **CONTACT)
        one.default_joint_cfg = newton.ModelBuilder.JointDofConfig(armature=0.0, limit_ke=0.0, limit_kd=0.0)
        one.add_urdf(job.free_urdf if job.floating else job.urdf, floating=job.floating, enable_self_collisions=False)
        names = [label.split("/")[-1] for label in one.joint_label]
        self.index = reordered(job.joints, [n for n in names if n in job.joints])
        self.links = [label.split("/")[-1] for label in one.body_label]
        base = 6 * job.floating
        if scene:
            self._hold(one, job, base)
        all_worlds = newton.ModelBuilder(up_axis=newton.Axis.Z)
        all_worlds.replicate(one, job.batch)
        if scene:
            all_worlds.add_ground_plane(cfg=one.default_shape_cfg)
        self.model = all_worlds.finalize(device="cpu", requires_grad=gradients)
        self.job, self.base = job, base

    def _hold(self, one: Any, job: Job, base: int) -> None:
        """Springs and dampers as drives towards a fixed angle."""
        for k, ours in enumerate(self.index):
            one.joint_target_ke[base + k], one.joint_target_kd[base + k] = job.stiffness, job.damping
            q = len(one.joint_target_q) - len(self.index) + k
            one.joint_target_q[q] = job.rest[ours]

    def q(self, ours: Array) -> Any:
        """(batch, nq) as one array of Warp; quaternions are x, y, z, w in both."""
        n = 7 * (self.base > 0)
        theirs = np.concatenate([ours[:, :n], ours[:, n:][:, self.index]], axis=1)
        return wp.array(theirs.ravel(), dtype=wp.float32, device="cpu", requires_grad=True)


@wp.kernel
def place_sum(body_q: wp.array[wp.transform], link: int, count: int, loss: wp.array[float]):
    """Sum of a link's coordinates, over all worlds."""
    p = wp.transform_get_translation(body_q[wp.tid() * count + link])
    wp.atomic_add(loss, 0, p[0] + p[1] + p[2])


@wp.kernel
def height_sum(joint_q: wp.array[float], count: int, loss: wp.array[float]):
    wp.atomic_add(loss, 0, joint_q[wp.tid() * count + 2])


def kinematics(job: Job) -> Case:
    robots = Robots(job)
    state, q = robots.model.state(), robots.q(job.states()[0])
    link, count = robots.links.index(job.link), len(robots.links)

    def values(_: None) -> Array:
        return state.body_q.numpy().reshape(job.batch, count, 7)[:CHECKED, link, :3]

    return Case(lambda: newton.eval_fk(robots.model, q, robots.model.joint_qd, state), job.batch, values)


def kinematics_gradient(job: Job) -> Case:
    robots = Robots(job, gradients=True)
    state, q = robots.model.state(), robots.q(job.states()[0])
    link, count = robots.links.index(job.link), len(robots.links)
    loss = wp.zeros(1, dtype=float, device="cpu", requires_grad=True)

    def run() -> Any:
        tape = wp.Tape()
        with tape:
            newton.eval_fk(robots.model, q, robots.model.joint_qd, state)
            wp.launch(place_sum, dim=job.batch, inputs=[state.body_q, link, count, loss], device="cpu")
        tape.backward(loss)
        found = q.grad.numpy().copy()
        tape.zero()
        return found

    def values(found: Array) -> Array:
        theirs = found.reshape(job.batch, -1)[:CHECKED, -len(job.joints) :]
        result = np.empty_like(theirs)
        result[:, robots.index] = theirs
        return result

    return Case(run, job.batch, values)


# --- simulation -------------------------------------------------------------------------------------------------------


class Rollout:
    """States, torques and contacts of a roll-out."""

    def __init__(self, job: Job, gradients: bool):
        self.robots = Robots(job, scene=True, gradients=gradients)
        model = self.model = self.robots.model
        self.job, self.gradients = job, gradients
        self.solver = newton.solvers.SolverFeatherstone(model, angular_damping=0.0)
        self.pipeline = newton.CollisionPipeline(model, broad_phase="explicit", requires_grad=gradients)
        # A tape needs what every step has computed.
        self.contacts = [self.pipeline.contacts() for _ in range(job.steps if gradients else 1)]
        kept = job.steps + 1 if gradients else 2
        self.states = [model.state() for _ in range(kept)]
        self.controls = [self._control(u) for u in job.controls()]
        self.start = self.robots.q(np.tile(job.start(), (job.batch, 1)))

    def _control(self, u: Array) -> Any:
        """u: (batch, joints)."""
        control = self.model.control()
        full = np.hstack([np.zeros((self.job.batch, 6)), u[:, self.robots.index]])
        control.joint_f = wp.array(full.ravel(), dtype=wp.float32, device="cpu", requires_grad=self.gradients)
        return control

    def run(self) -> Any:
        """The last state. Contacts are found anew in every step."""
        first = self.states[0]
        wp.copy(first.joint_q, self.start)
        first.joint_qd.zero_()
        newton.eval_fk(self.model, first.joint_q, first.joint_qd, first)
        for t, control in enumerate(self.controls):
            now, after = (self.states[t], self.states[t + 1]) if self.gradients else self.states
            now.clear_forces()
            contacts = self.contacts[t if self.gradients else 0]
            self.pipeline.collide(now, contacts)
            self.solver.step(now, after, control, contacts, self.job.dt)
            if not self.gradients:
                self.states.reverse()
        return self.states[-1] if self.gradients else self.states[0]

    def height(self, state: Any) -> Array:
        return state.joint_q.numpy().reshape(self.job.batch, -1)[:1, 2]


def steps(job: Job) -> Case:
    rollout = Rollout(job, gradients=False)
    return Case(rollout.run, job.batch * job.steps, rollout.height)


def rollout_gradient(job: Job) -> Case:
    rollout = Rollout(job, gradients=True)
    count = rollout.model.joint_coord_count // job.batch
    loss = wp.zeros(1, dtype=float, device="cpu", requires_grad=True)

    def run() -> tuple[Any, Array]:
        tape = wp.Tape()
        with tape:
            end = rollout.run()
            wp.launch(height_sum, dim=job.batch, inputs=[end.joint_q, count, loss], device="cpu")
        tape.backward(loss)
        g = np.array([c.joint_f.grad.numpy() for c in rollout.controls])
        tape.zero()
        loss.zero_()
        return end, g

    def values(found: tuple[Any, Array]) -> Array:
        g = found[1].reshape(job.steps, job.batch, -1)[:, 0, 6:]
        return np.array([rollout.height(found[0])[0], np.linalg.norm(g)])

    return Case(run, job.batch * job.steps, values)


if __name__ == "__main__":
    made = (kinematics, kinematics_gradient, steps, rollout_gradient)
    serve(("newton", "warp-lang"), "float32", {make.__name__: make for make in made})
