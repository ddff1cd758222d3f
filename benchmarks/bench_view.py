"""The cost of the viewer's server: moving robots sent to open tabs at 60 Hz, as a share of one core.

Tabs are processes of their own that read everything they are sent, so that only the server's time is counted. The poses
are computed by forward kinematics in every frame, as in a running world.

    python -m benchmarks.bench_view
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
import torch

import costate as cs
from costate.draw.poses import Kinematics, motion_of
from costate.viewer.layers import Layers
from costate.viewer.server import start

RATE = 60.0

# Reads and throws away what a tab would draw; prints how many bytes at the end.
TAB = """
import sys, time, viser
from websockets.sync.client import connect
with connect(f"ws://127.0.0.1:{sys.argv[1]}", subprotocols=[f"viser-v{viser.__version__}"], max_size=None) as socket:
    end, size = time.monotonic() + float(sys.argv[2]), 0
    print("open", flush=True)
    while time.monotonic() < end:
        try:
            size += len(socket.recv(timeout=0.5))
        except TimeoutError:
            pass
print(size)
"""


@dataclass(frozen=True)
class Cost:
    robots: int
    tabs: int
    cores: float
    """Processor time per time."""
    rate: float
    """Frames per second."""
    megabytes: float
    """Megabytes per second and tab."""


def measure(robots: int, tabs: int, seconds: float, name: str = "ur5") -> Cost:
    robot = cs.load_robot(name)
    home = torch.tensor(robot.model.home)
    motion = motion_of(robot, home.expand(1, robots, robot.nq), samples=robots)
    server = start(8090)
    layers = Layers(server, "/scene", motion.drawing, motion.links[0], robot.model, motion.extent)
    kinematics = Kinematics(robot.model)
    command = [sys.executable, "-c", TAB, str(server.get_port()), str(seconds + 2.0)]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(tabs)]
    for reader in readers:
        assert reader.stdout is not None and reader.stdout.readline().strip() == "open"
    phase = torch.linspace(0, 6, robots, dtype=torch.float64)[:, None]
    time.sleep(1.0)  # the scene itself has been sent
    begun, used, frames = time.monotonic(), time.process_time(), 0
    while (now := time.monotonic() - begun) < seconds:
        links = kinematics(home + 0.5 * torch.sin(3 * now + phase))
        links[..., 3] += motion.offsets[:, None]
        layers.move(links)
        frames += 1
        time.sleep(max(0.0, frames / RATE - (time.monotonic() - begun)))
    cores = (time.process_time() - used) / (time.monotonic() - begun)
    rate = frames / (time.monotonic() - begun)
    received = [int(reader.communicate(timeout=600)[0]) for reader in readers]
    server.stop()
    return Cost(robots, tabs, cores, rate, float(np.mean(received)) / 1e6 / (seconds + 2.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--check", action="store_true", help="only 64 robots and one tab; fail above half a core")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cases = [(64, 1)] if options.check else [(1, 1), (64, 1), (64, 10), (256, 1)]
    print("robots  tabs  cores  frames/s  MB/s per tab")
    for robots, tabs in cases:
        cost = measure(robots, tabs, options.seconds)
        print(
            f"{cost.robots:6d}  {cost.tabs:4d}  {cost.cores:5.2f}  {cost.rate:8.1f}  {cost.megabytes:12.2f}", flush=True
        )
    per_frame = cost.cores / cost.rate  # processor time: a busy machine shows fewer frames, which cost the same
    if options.check and per_frame * RATE > 0.5:
        sys.exit(
            f"{1e3 * per_frame:.1f} ms of processor time per frame; at most 0.5 cores at {RATE} frames per second are wanted"
        )


if __name__ == "__main__":
    main()
