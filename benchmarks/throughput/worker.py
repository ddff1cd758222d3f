"""A process that steps environments with random actions, and says how many steps it makes in a second.

Arguments: engine, environment, number of environments, threads. For every line of its input (seconds) it prints a line of JSON:
steps, wall seconds and processor seconds. It needs nothing but the engine it measures, so that engine's own interpreter runs it.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Step = Callable[[], Any]
CHOICES = 16
"""Different random actions, in turn."""


def _gymnasium(name: str, count: int, mode: str | None = None) -> Step:
    import gymnasium
    import numpy as np

    if name.startswith("costate/"):
        import costate.envs  # noqa: F401  (registers them)
    envs = gymnasium.make_vec(name, num_envs=count, vectorization_mode=mode)
    envs.reset(seed=0)
    space: Any = envs.single_action_space
    random = np.random.default_rng(0)
    actions = random.uniform(space.low, space.high, (CHOICES, count, *space.low.shape)).astype(np.float32)
    turn = iter(range(1 << 60))
    return lambda: envs.step(actions[next(turn) % CHOICES])


def _costate(name: str, count: int, threads: int) -> Step:
    import torch

    torch.set_num_threads(threads)
    return _gymnasium(name, count)


def _brax(name: str, count: int, threads: int) -> Step:
    import jax  # type: ignore[import-not-found]
    from brax import envs  # type: ignore[import-not-found]
    from brax.envs.wrappers.training import wrap  # type: ignore[import-not-found]

    task, backend = name.split(":")
    env = wrap(envs.get_environment(task, backend=backend), episode_length=1000)
    state = jax.jit(env.reset)(jax.random.split(jax.random.PRNGKey(0), count))
    step = jax.jit(env.step)
    actions = jax.random.uniform(jax.random.PRNGKey(1), (CHOICES, count, env.action_size), minval=-1, maxval=1)
    turn = iter(range(1 << 60))

    def run() -> None:
        nonlocal state
        state = step(state, actions[next(turn) % CHOICES])
        state.reward.block_until_ready()

    return run


def _mjx(name: str, count: int, threads: int) -> Step:
    """Return steps of physics alone: no observation, reward or new episode."""
    import gymnasium.envs.mujoco as here
    import jax  # type: ignore[import-not-found]
    import mujoco
    from mujoco import mjx  # type: ignore[attr-defined]

    file, substeps = name.split(":")
    model: Any = mujoco.MjModel.from_xml_path(  # type: ignore[attr-defined]
        str(Path(here.__file__).parent / "assets" / file)
    )
    there = mjx.put_model(model)
    data = jax.vmap(lambda _: mjx.make_data(there))(jax.numpy.arange(count))
    actions = jax.random.uniform(jax.random.PRNGKey(1), (CHOICES, count, model.nu), minval=-1, maxval=1)

    def whole(d: Any, u: Any) -> Any:
        d = d.replace(ctrl=u)
        return jax.lax.fori_loop(0, int(substeps), lambda _, d: mjx.step(there, d), d)

    step = jax.jit(jax.vmap(whole))
    turn = iter(range(1 << 60))

    def run() -> None:
        nonlocal data
        data = step(data, actions[next(turn) % CHOICES])
        data.qpos.block_until_ready()

    return run


ENGINES: dict[str, Callable[[str, int, int], Step]] = {
    "costate": _costate,
    "sync": lambda name, count, threads: _gymnasium(name, count, "sync"),
    "async": lambda name, count, threads: _gymnasium(name, count, "async"),
    "brax": _brax,
    "mjx": _mjx,
}
"""Engine -> what makes a function that steps all environments once, given their name and number, and threads."""


def _processor() -> float:
    """Return the processor seconds of this process and of those it has started."""
    total = time.process_time()
    for child in multiprocessing.active_children():
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def main() -> None:
    engine, name, count, threads = sys.argv[1:]
    told = os.dup(1)
    os.dup2(2, 1)  # what libraries print must not come between
    out = os.fdopen(told, "w")
    try:
        step = ENGINES[engine](name, int(count), int(threads))
        for _ in range(3):
            step()
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}), file=out, flush=True)
        return
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in sys.stdin:
        seconds, steps = float(line), 0
        wall, busy = time.perf_counter(), _processor()
        while not steps or time.perf_counter() - wall < seconds:
            step()
            steps += int(count)
        answer = {"steps": steps, "wall": time.perf_counter() - wall, "processor": _processor() - busy}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
