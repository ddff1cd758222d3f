"""Network, physics, or both? Compare three models of an iiwa with unmodelled friction and elastic gears on a new motion."""

import os
from copy import deepcopy

import torch
from rich.progress import track
from torch import Tensor, nn

import costate as cs
from costate.identify import differentiate
from costate.report import Report

torch.set_default_dtype(torch.float64)
RATE, PERIOD, EPOCHS, DESIGN = (100, 10.0, 25, 20) if os.environ.get("COSTATE_QUICK") else (100, 20.0, 100, 60)
STIFFNESS = torch.tensor([6e3, 6e3, 4e3, 4e3, 2e3, 2e3, 1e3])  # stiffness of the gears [N m/rad]
FRICTION = torch.tensor([4.0, 4.0, 3.0, 3.0, 1.5, 1.0, 0.6])  # friction of the joints [N m]
MODELS = ("(a) network", "(b) identified", "(c) identified + residual")


def record(robot: cs.Robot, seed: int) -> dict[str, Tensor]:
    """Return motor positions, their derivatives and motor torques for a motion of the links, in PERIOD seconds."""
    own = {"margin": 0.5, "max_acceleration": 15.0, "iterations": DESIGN, "restarts": 1}
    design = cs.excite(robot, period=PERIOD, seed=seed, **own)
    motion = {name: torch.as_tensor(x) for name, x in design.sample(RATE).items()}
    load = robot.inverse_dynamics(motion["q"], motion["v"], motion["a"])
    twisted = (motion["q"] + load / STIFFNESS).numpy()
    q, v, a = (torch.as_tensor(x) for x in differentiate(motion["t"].numpy(), twisted))
    stribeck = torch.tanh(v / 0.02) * (1 + 0.6 * torch.exp(-((v / 0.15) ** 2))) + 0.5 * v
    noise = 0.02 * torch.randn(q.shape, generator=torch.Generator().manual_seed(seed))
    tau = load + FRICTION * (stribeck + 0.15 * torch.sin(6 * q) + noise)
    return {"t": motion["t"], "q": q, "v": v, "a": a, "tau": tau}


def train(model: nn.Module, predict, log: dict[str, Tensor]):
    spread, random = log["tau"].std(0), torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in track(range(EPOCHS), "training"):
        for k in torch.randperm(len(log["q"]), generator=random).split(250):
            optimizer.zero_grad()
            error = predict(log["q"][k], log["v"][k], log["a"][k]) - log["tau"][k]
            ((error / spread) ** 2).mean().backward()
            optimizer.step()
        schedule.step()
    return predict


def network_only(log: dict[str, Tensor]):
    n, middle, spread = len(STIFFNESS), log["tau"].mean(0), log["tau"].std(0)
    net = nn.Sequential(nn.Linear(4 * n, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, n))
    return train(net, lambda q, v, a: middle + spread * net(torch.cat([q.sin(), q.cos(), v, a / 5], -1)), log)


def with_residual(identified, log: dict[str, Tensor], validation: dict[str, Tensor]):
    """Train four forms of residual, scaled to the errors of the analytic model; return the best one on another motion."""
    robot = cs.Robot(identified)
    left = (robot.inverse_dynamics(log["q"], log["v"], log["a"]) - log["tau"]).std(0)
    ripple = cs.residual.JointFriction(robot.nv, harmonics=8, scale=left)
    network = cs.residual.TorqueNetwork(robot.nq, robot.nv, (64, 64), scale=left)
    forms = {"friction": [cs.residual.JointFriction(robot.nv, scale=left)], "friction and ripple": [ripple]}
    found = []
    for name, form in (forms | {"network": [network], "all three": [ripple, network]}).items():
        robot = cs.Robot(identified)
        for module in form:
            robot.augment(deepcopy(module))
        model = train(robot, robot.inverse_dynamics, log)
        found.append((float(errors_on(validation, model)[1].mean()), model))
        print(f"residual: {name:<20} validation error {found[-1][0]:.3f}")
    return min(found, key=lambda pair: pair[0])[1]


def errors_on(log: dict[str, Tensor], model) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        tau = model(log["q"], log["v"], log["a"])
    return tau, (tau - log["tau"]).std(0) / log["tau"].std(0)


def main() -> tuple[dict[str, Tensor], dict[str, tuple[Tensor, Tensor]], list[str]]:
    robot = cs.load_robot("iiwa7")
    torch.manual_seed(0)
    torch.set_num_threads(1)  # with such small networks threads would only wait for each other
    test, validation, *logs = (record(robot, seed) for seed in range(10, 15))
    log = {name: torch.cat([x[name] for x in logs]) for name in ("q", "v", "a", "tau")}
    identified = cs.identify(robot, {name: x.numpy() for name, x in log.items()}).model
    analytic, both = cs.Robot(identified).inverse_dynamics, with_residual(identified, log, validation)
    results = {k: errors_on(test, f) for k, f in zip(MODELS, (network_only(log), analytic, both), strict=True)}
    for name, (_, error) in results.items():
        print(f"{name:<26} error / spread " + " ".join(f"{e:6.3f}" for e in error) + f"   mean {error.mean():.3f}")
    page = Report("Network, physics, or both?", "errors in a motion that no model has seen")
    page.plot({k: y for k, (_, y) in results.items()}, range(1, 8), title="Error / spread", x_label="joint", log_y=True)
    print("wrote", page.save("out/05_structured_learning.html"))
    a, b, c = (error.mean() for _, error in results.values())
    assert c < 0.6 * b < 0.6 * a
    return test, results, robot.joint_names


if __name__ == "__main__":
    main()
