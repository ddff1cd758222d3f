"""What an installed Costate must do, outside of any checkout, with nothing but its own dependencies: `make package` runs this file.

python -P tests/wheel_smoke.py CHECKOUT
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import torch

import costate as cs
from costate.core.extras import install_command
from costate.model.builtin import builtin_names
from costate.report import Report


def main(checkout: Path) -> None:
    """Check an installation; raise AssertionError where it falls short."""
    place = Path(cs.__file__).resolve()
    assert checkout.resolve() / "src" not in place.parents, f"{place} is the checkout, not the wheel"
    for name in builtin_names():
        robot = cs.load_robot(name)
        assert robot.nv > 0, name
    assert install_command("view").endswith(" install 'costate-physics[view]'"), install_command("view")
    check_gradient()
    check_roll_out()
    with tempfile.TemporaryDirectory() as folder:
        report = Report("A page")
        world = cs.World([cs.load_robot("two_link")], contact=None, dt=0.01)
        report.replay(world, world.rollout(world.initial_state(), steps=10))
        page = report.save(Path(folder) / "page.html").read_text()
        assert (
            "<style" in page and "costateScene" in page and "kinds.recording" in page
        )  # page.css, scene.js, replay.js
    command = "import sys; from costate.cli.main import main; sys.argv = ['costate', 'train', 'list']; main()"
    shown = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert shown.returncode == 0 and "insertion" in shown.stdout, shown.stderr
    print(
        f"costate {cs.__version__} works on Python {sys.version.split()[0]} with torch {torch.__version__}: {place.parent}"
    )


def check_gradient() -> None:
    """Compare the gradient of a UR5's forward dynamics with central differences."""
    robot = cs.load_robot("ur5")
    q = torch.linspace(-1, 1, 6, dtype=torch.float64)
    tau = torch.ones(6, dtype=torch.float64)

    def f(q: torch.Tensor) -> torch.Tensor:
        return robot.forward_dynamics(q, q, tau).sum()

    x = q.clone().requires_grad_()
    (g,) = torch.autograd.grad(f(x), x)
    h = 1e-6 * torch.eye(6, dtype=torch.float64)
    d = torch.stack([(f(q + e) - f(q - e)) / 2e-6 for e in h])
    torch.testing.assert_close(g, d, rtol=1e-5, atol=1e-5)


def check_roll_out() -> None:
    """Roll out on one thread, on two, and in another thread than the main one: the same bits."""
    world = cs.World(robots=[cs.load_robot("ur5")], dt=1e-3)
    state, controls = world.initial_state(batch=512), torch.zeros(100, 512, world.nu, dtype=torch.float64)
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(world.rollout(state, controls))
    thread = threading.Thread(target=lambda: found.append(world.rollout(state, controls)))
    thread.start()
    thread.join()
    assert found[0].isfinite().all() and torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
