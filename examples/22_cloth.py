"""Let a towel fall over a ball, and find its friction and how stiff it bends from how it moved.

    python examples/22_cloth.py

With COSTATE_QUICK=1 in the environment the towel has fewer points, and no film is made.
"""

import os
import time

import torch

import costate as cs
from costate.continuum import ClothModel, Collider, Solver, sheet
from costate.draw.cloth.files import write_gltf
from costate.draw.cloth.film import render_cloth

torch.set_default_dtype(torch.float64)
QUICK = bool(os.environ.get("COSTATE_QUICK"))
POINTS, STEPS, ITERATIONS = (8, 20, 12) if QUICK else (16, 40, 20)
OUT = "out/22_cloth"
TRUE = torch.tensor([0.35, 4e-4])  # friction, bending stiffness [N m]


def main() -> None:
    ball = Collider(cs.shapes.sphere(0.1), name="ball")
    towel = sheet((POINTS, POINTS), (0.3, 0.3), name="towel")
    model = ClothModel([towel], dt=1 / 100, colliders=[ball], solver=Solver(1e-7))
    start = model.start(model.start().x + torch.tensor([0.03, 0.0, 0.103]))  # not in the middle: it slides off

    def motion(friction: torch.Tensor, bending: torch.Tensor) -> torch.Tensor:
        return model.run(STEPS, start, friction=friction[None], parameters={"bending": bending}).x

    with torch.no_grad():
        seen = motion(*TRUE)

    def residual(z: torch.Tensor) -> torch.Tensor:
        return (motion(*torch.exp(z)) - seen).flatten()

    # Gauss-Newton on the logarithms: two tangents are the whole Jacobian.
    z, begun, error = torch.log(torch.tensor([0.15, 1e-4])), time.perf_counter(), torch.inf
    for k in range(ITERATIONS):
        r = residual(z)
        J = torch.stack([torch.func.jvp(residual, (z,), (way,))[1] for way in torch.eye(2)], -1)
        z = z - torch.linalg.solve(J.T @ J, J.T @ r).clamp(-0.7, 0.7)
        error = float((torch.exp(z) / TRUE - 1).abs().max())
        print(
            f"iteration {k}: {1e3 * r.square().mean().sqrt():.4f} mm, friction {z[0].exp():.4f}, bending {z[1].exp():.3e}"
        )
        if error < 1e-4:
            break
    print(f"found within {100 * error:.4f} % in {time.perf_counter() - begun:.1f} s")

    with torch.no_grad():
        history = model.run(2 * STEPS, start)
    print(write_gltf(model, history.times, history.x, f"{OUT}.glb"))
    print(render_cloth(model, history.times, history.x, f"{OUT}.png", size=(480, 320)))
    if not QUICK:
        print(render_cloth(model, history.times, history.x, f"{OUT}.mp4"))
    assert error < 1e-3, "friction and bending were not found"


if __name__ == "__main__":
    main()
