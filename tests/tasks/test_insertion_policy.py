"""The guided controller with its observer, exported as a user would, in closed loop: in C, in onnxruntime and in NumPy."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from costate.cli.main import main
from costate.tasks.insertion import (
    Disturbances,
    Insertion,
    InsertionOptions,
    InsertionTraining,
    Trajectory,
    draw,
    judge,
)
from costate.tasks.insertion.described import raw_observation
from costate.train.run import Run

onnxruntime = pytest.importorskip("onnxruntime")

COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
PROGRAM = """
#include "costate_policy.h"
int begin(float *memory);
void act(const float *in, float *memory, float *out);
int begin(float *memory) { costate_policy_begin(memory); return COSTATE_MEMORY; }
void act(const float *in, float *memory, float *out) { costate_policy(in, memory, out); }
"""
APART = 1e-5
"""Difference of joint positions at the end [rad]: that of float32 in a closed loop of 90 steps."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Run:
    task = Insertion(InsertionOptions().robust())
    training = InsertionTraining(hidden=16)
    policy = task.policy(training, torch.Generator().manual_seed(0))
    run = Run.create(tmp_path_factory.mktemp("runs") / "run", task, training, policy.state_dict())
    assert main(["export", str(run.path)]) == 0
    return run


def in_c(folder: Path) -> Callable[[np.ndarray], np.ndarray]:
    (folder / "program.c").write_text(PROGRAM)
    done = subprocess.run(
        [str(COMPILER), "-std=c99", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", "policy.so", "program.c", "-lm"],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    library, memory, out = ctypes.CDLL(str(folder / "policy.so")), np.zeros(1000, np.float32), np.zeros(6, np.float32)
    assert library.begin(ctypes.c_void_p(memory.ctypes.data)) < 1000

    def act(x: np.ndarray) -> np.ndarray:
        library.act(*(ctypes.c_void_p(a.ctypes.data) for a in (x, memory, out)))  # which keeps the memory alive
        return out

    return act


def in_onnx(folder: Path) -> Callable[[np.ndarray], np.ndarray]:
    session = onnxruntime.InferenceSession(str(folder / "policy.onnx"), providers=["CPUExecutionProvider"])
    memory = np.array(json.loads(session.get_modelmeta().custom_metadata_map["memory"]), np.float32)[None]

    def act(x: np.ndarray) -> np.ndarray:
        nonlocal memory
        command, memory = session.run(None, {"measurement": x[None], "memory": memory})
        return command[0]

    return act


def test_the_exported_controller_inserts(folder: Run) -> None:
    if COMPILER is None:
        pytest.skip("no C compiler: CC names one")
    task = folder.task
    network = task.exported(folder.policy)
    kept = network.memory

    def in_numpy(x: np.ndarray) -> np.ndarray:
        nonlocal kept
        command, kept = network.step(x, kept)
        return command

    ends = []
    episodes = draw(task, 1, torch.Generator().manual_seed(1), Disturbances(), torch.float64)
    for act in (in_numpy, in_c(folder.path), in_onnx(folder.path)):
        states = [episodes.state]
        for step in range(task.steps):
            seen = raw_observation(states[-1][0], step).numpy().astype(np.float32)
            command = torch.from_numpy(np.array(act(seen), np.float64))[None]
            states.append(task.world.step(states[-1], command))
        path = torch.stack(states)
        assert judge(task, Trajectory(path, torch.zeros(task.steps, 1, 6))).success.all()
        ends.append(path[-1, 0, :6])
    for end in ends[1:]:
        torch.testing.assert_close(end, ends[0], rtol=0, atol=APART)
