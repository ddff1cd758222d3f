"""ONNX files: run by onnxruntime, an implementation of its own, they give the policy's commands."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from costate.export import network_of, write_onnx
from costate.export.onnx_file import TOLERANCE, onnx_difference
from costate.tasks.insertion import Insertion, Policy
from costate.tasks.insertion.described import raw_observation

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def path(policy: Policy, task: Insertion, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_onnx(network_of(policy, task), tmp_path_factory.mktemp("onnx") / "policy.onnx")


@pytest.mark.parametrize("batch", [1, 5, 256])
def test_onnxruntime_gives_the_commands_of_the_policy(path: Path, policy: Policy, task: Insertion, batch: int) -> None:
    state = task.sample(batch, torch.Generator().manual_seed(batch), torch.float32)
    state[:, 9:15] = torch.randn(batch, 6, generator=torch.Generator().manual_seed(4))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for step in (0, 12, 35):
        (found,) = session.run(None, {"measurement": raw_observation(state, step).numpy()})
        with torch.no_grad():
            wanted = task.control(policy.double()(task.observe(state.double(), step))).numpy()
        policy.float()
        assert found.shape == (batch, 6) and found.dtype == np.float32
        assert (np.abs(found - wanted) / task.action_scale[1].numpy()).max() < TOLERANCE["float64"]


def test_the_file_says_what_it_takes_and_gives(path: Path, task: Insertion) -> None:
    notes = {p.key: p.value for p in onnx.load(str(path)).metadata_props}
    inputs, outputs = json.loads(notes["measurement"]), json.loads(notes["command"])
    assert len(inputs) == 19 and len(outputs) == 6
    assert [o["scale"] for o in outputs] == pytest.approx(task.action_scale[1].tolist())
    assert inputs[0]["middle"] == pytest.approx(float(task.start[0]))
    assert "0.3 s" in notes["about"]


def test_a_file_of_another_network_is_noticed(path: Path, policy: Policy, task: Insertion) -> None:
    network = network_of(policy, task)
    assert onnx_difference(network, path) < TOLERANCE["float64"]
    constants = dict(network.graph.constants)
    constants["inner.weight"] = constants["inner.weight"].copy()
    constants["inner.weight"][17, 3] += 1e-3
    other = replace(network, graph=replace(network.graph, constants=constants))
    assert onnx_difference(other, path) > TOLERANCE["float64"]


def test_single_precision_is_float32_throughout(policy: Policy, task: Insertion, tmp_path: Path) -> None:
    network = network_of(policy, task)
    path = write_onnx(network, tmp_path / "single.onnx", "float32")  # checked inside
    kinds = {t.data_type for t in onnx.load(str(path)).graph.initializer}
    assert kinds == {onnx.TensorProto.FLOAT}, "and no whole numbers: this network needs none"
    assert onnx_difference(network, path) < TOLERANCE["float32"]
