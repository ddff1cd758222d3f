"""The pool: results in order and with the same bits, whatever becomes of workers; and what is said about them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from tests.scale.threads import NUMBERS, SQUARES, Squares, ThreadWorker, lost

from costate.scale import desk, pool
from costate.scale.executor import Executor, InProcess
from costate.scale.message import Message
from costate.scale.pool import MachineLostError, Pool

FACTOR = Message({}, {"factor": torch.tensor(0.1)})
EXPECTED = [float(torch.tensor(0.1) * float(k) ** 2) for k in range(len(NUMBERS))]


def squares(executor: Executor) -> list[float]:
    return [float(m.tensors["square"]) for m in executor.map(NUMBERS, FACTOR)]


def staff(*fates: Callable[[int], None]) -> Callable[[], ThreadWorker]:
    """Workers with these fates, one after the other; then quiet ones."""
    left = list(fates)
    return lambda: ThreadWorker(left.pop(0)) if left else ThreadWorker()


@pytest.mark.parametrize("number", [0, 1, 3, 20])
def test_results_come_in_order_with_the_same_bits(number: int) -> None:
    with Pool(SQUARES, number, ThreadWorker) if number else InProcess(Squares(SQUARES)) as executor:
        assert squares(executor) == EXPECTED
        assert squares(executor) == EXPECTED


def test_a_shard_of_a_lost_worker_goes_to_another_one(capsys: pytest.CaptureFixture[str]) -> None:
    def dies_at_5(number: int) -> None:
        if number == 5:
            lost(number)

    with Pool(SQUARES, 2, staff(dies_at_5, dies_at_5)) as executor:
        assert squares(executor) == EXPECTED
        assert "was unplugged at 5" in executor.status()
    assert "was unplugged at 5" in capsys.readouterr().err


def test_a_shard_that_ends_every_worker_is_named() -> None:
    def dies_at_5(number: int) -> None:
        if number == 5:
            lost(number)

    with Pool(SQUARES, 2, lambda: ThreadWorker(dies_at_5)) as executor:
        with pytest.raises(
            ValueError, match=r"shard 5 was lost 3 times; at last worker .* was unplugged at 5.*--shard"
        ):
            squares(executor)


def test_nobody_waits_for_a_worker_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "LATE", 0.2)
    go_on = threading.Event()

    def hangs_at_5(number: int) -> None:
        if number == 5:
            go_on.wait(60)

    with Pool(SQUARES, 2, staff(hangs_at_5)) as executor:
        begun = time.monotonic()
        assert squares(executor) == EXPECTED
        assert squares(executor) == EXPECTED  # one of them still hangs
        assert time.monotonic() - begun < 30
        go_on.set()  # its answer comes in the middle of another map, and is no answer to that
        assert squares(executor) == EXPECTED


def test_this_process_computes_when_nobody_else_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pool, "ALONE", 0.1)
    go_on = threading.Event()

    def hangs(number: int) -> None:
        go_on.wait(60)

    with Pool(SQUARES, 1, lambda: ThreadWorker(hangs)) as executor:
        assert squares(executor) == EXPECTED
        begun = time.monotonic()
        monkeypatch.setattr(pool, "ALONE", 1.0)
        time.sleep(1.0)
        assert squares(executor) == EXPECTED  # at once, shard by shard
        assert time.monotonic() - begun < 10
        go_on.set()
    assert "no worker answers" in capsys.readouterr().err


def test_a_worker_that_cannot_start_leaves_its_place_empty() -> None:
    with Pool(SQUARES, 1, lambda: ThreadWorker(lost)) as executor:
        with pytest.raises(ValueError, match="no worker is left"):
            squares(executor)


def test_machines_that_go_do_not_close_a_place() -> None:
    """However many nodes are lost, even while a worker starts there, the next one is waited for."""

    def gone(number: int) -> None:
        raise MachineLostError(f"went with its machine at {number}")

    with Pool(SQUARES, 1, staff(*[gone] * 5)) as executor:
        assert squares(executor) == EXPECTED
        assert len(executor.lost) == 5


def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A node with another torch is turned away by name; the others do its work. With no other there is an error."""
    ours = desk.versions()
    assert torch.__version__.startswith(ours["torch"]) and len(ours["source"]) == 12
    monkeypatch.setattr(pool, "versions", lambda: ours)
    odd = [{**ours, "torch": "1.0"}, ours]
    monkeypatch.setattr(desk, "versions", lambda: odd.pop(0) if odd else ours)
    with Pool(SQUARES, 2, ThreadWorker) as executor:
        assert squares(executor) == EXPECTED
    said = capsys.readouterr().err
    assert f"is refused: it has torch 1.0 (here {ours['torch']})" in said
    monkeypatch.setattr(desk, "versions", lambda: {**ours, "source": "other"})
    with (
        Pool(SQUARES, 1, ThreadWorker) as executor,
        pytest.raises(ValueError, match=r"no worker is left.*source other"),
    ):
        squares(executor)


def test_another_kind_of_cpu_is_said_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(desk, "host", lambda: SimpleNamespace(cpu="other"))
    with Pool(SQUARES, 6, ThreadWorker) as executor:
        assert squares(executor) == EXPECTED
        while not all(place.ready for place in executor.places):
            assert squares(executor) == EXPECTED
        assert "by each" in executor.status()  # six names would be too many
    assert capsys.readouterr().err.count("has another CPU (other, here") == 1


@pytest.mark.parametrize(
    ("number", "message"), [("memory", "worker .* ran out of memory; smaller shards"), ("x", "could not convert")]
)
def test_errors_name_the_worker(number: str, message: str) -> None:
    with Pool(SQUARES, 1, ThreadWorker) as executor, pytest.raises(ValueError, match=message):
        list(executor.map([Message({"number": number})]))
