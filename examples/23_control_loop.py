"""A control loop with fixed arrays: torques by LQR, with the robot linearised anew every 10 ms.

    python examples/23_control_loop.py

Nothing in the loop makes a tensor: kernels read and write arrays that stay where they are, so that a call costs little more than
the computation. `bind` fixes the arrays of a function; Jacobians and gradients of it read the same ones.
"""

import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import costate as cs

DT = 0.001  # [s]
STEPS = 1500

robot = cs.load_robot("ur5")
nv = robot.nv
target = np.array([0.6, -1.2, 1.4, -0.4, 0.8, 0.3])
q, v, tau, zero = target + 0.3, np.zeros(nv), np.zeros(nv), np.zeros(nv)

dynamics = robot.kernel("forward_dynamics").bind(q=q, v=v, tau=tau)  # reads q, v and tau as they are when it is called
slope = robot.kernel("forward_dynamics_jacobians").narrow.bind(q=q, v=v, tau=tau)  # narrow: for one sample at a time
hold = robot.kernel("inverse_dynamics").bind(q=target, v=zero, a=zero)  # torques that hold the target


def linearised() -> tuple[np.ndarray, np.ndarray]:
    """Return A and B of one control step: (dq, dv)' = A (dq, dv) + B dtau."""
    slope()
    J = slope.outputs
    A = np.block([[np.eye(nv), DT * np.eye(nv)], [DT * J.da_dq, np.eye(nv) + DT * J.da_dv]])
    return A, np.vstack([np.zeros((nv, nv)), DT * J.da_dtau])


Q, R = np.diag([400.0] * nv + [4.0] * nv) * DT, 0.002 * np.eye(nv) * DT
P = np.zeros((2 * nv, 2 * nv))


def gain(P: np.ndarray, sweeps: int) -> tuple[np.ndarray, np.ndarray]:
    """Improve the cost to go around where the robot is now; return it with the gain that it gives."""
    A, B = linearised()
    K = np.zeros((nv, 2 * nv))
    for _ in range(sweeps):
        K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        P = Q + A.T @ P @ (A - B @ K)
        P = (P + P.T) / 2
    return P, K


hold()
tau[:] = hold.outputs.tau
P, K = gain(P, 400)
errors, spent = np.zeros((STEPS, nv)), np.zeros((STEPS, 2))
for step in range(STEPS):
    if step % 10 == 9:
        P, K = gain(P, 1)
    error = np.concatenate([q - target, v])
    tau[:] = np.clip(hold.outputs.tau - K @ error, -150, 150)
    begun = time.perf_counter()
    dynamics()  # here the robot would be driven and measured
    between = time.perf_counter()
    slope()
    errors[step], spent[step] = q - target, (between - begun, time.perf_counter() - between)
    push = 3.0 * np.ones(nv) if 700 <= step < 720 else 0.0  # somebody knocks against it
    v += DT * (dynamics.outputs.a + push)
    q += DT * v

# Gradients of a cost in the accelerations, on the same arrays: J^T seed, without forming J.
back = dynamics.vjp(wrt="tau")
back.inputs.a_bar[:] = np.linspace(-1, 1, nv)
for each in (dynamics, back, slope):
    each()
expected = slope.outputs.da_dtau.T @ back.inputs.a_bar

off = np.abs(q - target).max()
print(f"{1e3 * off:.3f} mrad from the target after {STEPS * DT:.1f} s")
value, all_jacobians = 1e6 * np.median(spent, 0)
print(f"forward dynamics {value:.1f} us, with all Jacobians {all_jacobians:.1f} us")
figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
axes.plot(DT * np.arange(STEPS), errors, label=robot.joint_names)
axes.set(xlabel="time [s]", ylabel="distance from the target [rad]")
axes.legend(fontsize="x-small")
Path("out").mkdir(exist_ok=True)
figure.savefig("out/23_control_loop.png", dpi=110)
assert off < 1e-3 and np.abs(v).max() < 1e-2
np.testing.assert_allclose(back.outputs.tau_bar, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
