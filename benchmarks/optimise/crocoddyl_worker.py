"""Crocoddyl on a problem given as JSON: run by bench_optimise.py with the Python of an environment that has crocoddyl.

Prints a JSON object: seconds of an iteration and of its parts, iterations, cost.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import json
import sys
import time

import crocoddyl
import numpy as np
import pinocchio


def main() -> None:
    task = json.loads(sys.stdin.read())
    model = pinocchio.buildModelFromUrdf(task["urdf"])
    in_their_order(model, task)
    # The second result keeps the models alive: the problem refers to some of them only.
    problem, _models = reach(model, task) if not task["feet"] else stand(model, task)
    solver = crocoddyl.SolverFDDP(problem)
    solver.th_stop = task["tolerance"]
    steps = task["steps"]
    x0 = np.array(task["state"])
    u = [np.array(task["control"])] * steps
    solver.solve([x0] * (steps + 1), u, task["iterations"], False, task["regularization"])
    found = {"iterations": solver.iter, "cost": solver.cost, "version": crocoddyl.__version__}
    problem.calc(solver.xs, solver.us)
    found |= {
        "derivatives": best(lambda: (problem.calc(solver.xs, solver.us), problem.calcDiff(solver.xs, solver.us)), task),
        "backward": best(solver.backwardPass, task),
        "forward": best(lambda: solver.forwardPass(1.0), task),
        "dimensions": [model.nv, len(u[0]), len(x0)],
    }
    print(json.dumps(found))


def in_their_order(model, task) -> None:
    """Pinocchio sorts joints by name: put states and controls of the task into that order."""
    names = [n for n in model.names if n in task["joints"]]
    order = [task["joints"].index(n) for n in names]
    q, v = model.nq - len(order), model.nv - len(order)  # of the floating base, which comes first
    take = [*range(q), *(q + k for k in order), *range(model.nq, model.nq + v), *(model.nq + v + k for k in order)]
    for key in ("state", "wanted"):
        task[key] = [task[key][k] for k in take]
    task["control"] = [task["control"][k] for k in order]


def best(run, task) -> float:
    """Seconds of a call: the best of several rounds."""
    least = float("inf")
    for _ in range(task["rounds"]):
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
    return least


def reach(model, task):
    """An arm brings a frame to a place: torques, no contact."""
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFull(state)
    frame = model.getFrameId(task["frame"])
    running, final = crocoddyl.CostModelSum(state, actuation.nu), crocoddyl.CostModelSum(state, actuation.nu)
    place = crocoddyl.CostModelResidual(
        state, crocoddyl.ResidualModelFrameTranslation(state, frame, np.array(task["goal"]), actuation.nu)
    )
    add_regularisation(running, state, actuation.nu, task)
    final.addCost("place", place, task["weights"]["place"])
    final.addCost("state", state_cost(state, actuation.nu, task), task["weights"]["final_state"])

    def action(costs, dt):
        free = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
        return crocoddyl.IntegratedActionModelEuler(free, dt)

    models = action(running, task["dt"]), action(final, 0.0)
    problem = crocoddyl.ShootingProblem(np.array(task["state"]), [models[0]] * task["steps"], models[1])
    return problem, (state, actuation, running, final, models)


def stand(model, task):
    """A quadruped lowers its trunk; its feet are fixed to the ground as equality constraints, which Crocoddyl must be told."""
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFloatingBase(state)
    data = model.createData()
    q = np.array(task["state"])[: model.nq]
    pinocchio.forwardKinematics(model, data, q)
    pinocchio.updateFramePlacements(model, data)

    def contacts():
        group = crocoddyl.ContactModelMultiple(state, actuation.nu)
        for foot in task["feet"]:
            frame = model.getFrameId(foot)
            place = data.oMf[frame].translation
            contact = crocoddyl.ContactModel3D(
                state, frame, place, pinocchio.LOCAL_WORLD_ALIGNED, actuation.nu, np.array([0.0, 50.0])
            )
            group.addContact(foot, contact)
        return group

    running, final = crocoddyl.CostModelSum(state, actuation.nu), crocoddyl.CostModelSum(state, actuation.nu)
    add_regularisation(running, state, actuation.nu, task)
    final.addCost("state", state_cost(state, actuation.nu, task), task["weights"]["final_state"])

    def action(costs, dt):
        touching = crocoddyl.DifferentialActionModelContactFwdDynamics(state, actuation, contacts(), costs, 0.0, True)
        return crocoddyl.IntegratedActionModelEuler(touching, dt)

    models = action(running, task["dt"]), action(final, 0.0)
    problem = crocoddyl.ShootingProblem(np.array(task["state"]), [models[0]] * task["steps"], models[1])
    return problem, (state, actuation, running, final, models)


def add_regularisation(costs, state, nu, task) -> None:
    """Costs of every step. Crocoddyl multiplies them by the step's length; here they are a plain sum."""
    wanted = np.array(task["control"])
    control = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, wanted))
    costs.addCost("control", control, task["weights"]["control"] / task["dt"])
    costs.addCost("state", state_cost(state, nu, task), task["weights"]["state"] / task["dt"])


def state_cost(state, nu, task):
    return crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelState(state, np.array(task["wanted"]), nu))


main()
