"""Names that are code, foreign headers, odd frames and values: a sample of `make study-faults`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import html

from benchmarks.faults.pages import Live, _skeleton, hostile_name, names_in_reports


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    made = Live(77, tmp_path_factory.mktemp("live"))
    yield made
    made.page.close()


def test_names_are_data_in_reports() -> None:
    chance = random.Random(5)
    assert [why for _ in range(3) if (why := names_in_reports(chance))] == []


@pytest.mark.parametrize(("attack", "times"), [("headers", 20), ("frames", 10), ("values", 6)])
def test_the_live_page_stays_at_work(live: Live, attack: str, times: int) -> None:
    assert [why for _ in range(times) if (why := getattr(live, attack)())] == []


def test_the_study_notices_names_that_are_not_escaped(tmp_path: Path) -> None:
    plain = "<html><body><p>{}</p></body></html>"
    chance = random.Random(1)
    found = sum(
        _skeleton(html.fromstring(plain.format(hostile_name(chance)))) != _skeleton(html.fromstring(plain))
        for _ in range(50)
    )
    assert found > 20
