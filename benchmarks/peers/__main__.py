"""Costate beside other libraries, measured in one run: tables, plots, JSON, a page, and a gate.

    python -m benchmarks.peers [--peers NAME,NAME] [--quantities NAME,NAME] [--gate] [--markdown docs/peers.md] ...

`plan.py` says what is measured, `peer.py` with which libraries; `--list` shows both.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro

from benchmarks.measure.table import machine, now
from benchmarks.peers import gate, page, plan, plots, roofline
from benchmarks.peers.peer import PEERS, Peer, chosen
from benchmarks.peers.plan import QUANTITIES, Plan, by_processor_time
from benchmarks.peers.results import Results
from benchmarks.peers.runner import Runner
from benchmarks.peers.venvs import LIMIT, Environment, default_folder, environment


@dataclass(frozen=True)
class Options:
    """Options of `python -m benchmarks.peers`."""

    peers: Annotated[str, tyro.conf.arg(metavar="NAME,NAME")] = ""
    """Libraries to compare with; default: all of them (see --list)."""
    quantities: Annotated[str, tyro.conf.arg(metavar="NAME,NAME")] = ""
    """Quantities to measure; default: everything (see --list)."""
    quick: bool = False
    """Small and rough: does it run?"""
    gate: bool = False
    """Measure only what the committed ratios need; exit code 1 if one is missed by more than half."""
    list: bool = False
    """Show peers and quantities, and measure nothing."""
    json: Path | None = None
    """File for all results; written after every case, so that an interrupted run keeps what it has."""
    markdown: Path | None = None
    """Page to write."""
    plots: Path | None = None
    """Folder for pictures."""
    environments: Path | None = None
    """Folder of the peers' virtual environments; default: bench in the cache of Costate. Each is made once, and kept."""
    here: bool = False
    """Run peers in the environment of Costate instead, as far as they are installed there."""
    processor_time: bool = False
    """Count processor time instead of time, for a busy machine; leaves out cold starts and threads. The gate always does."""
    install_limit: float = LIMIT
    """Seconds that installing a peer may take."""
    limit: float = 150.0
    """Seconds that a peer may take to prepare a case and to compute it once."""
    resume: bool = False
    """Go on with the run that --json holds: measure what is missing there."""
    again: Path | None = None
    """Measure nothing: tables, page and plots of an earlier run's JSON."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 1 where the gate is missed, 2 for a mistake in the call."""
    options = tyro.cli(Options, prog="python -m benchmarks.peers", args=argv)
    try:
        return run(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def run(options: Options) -> int:
    """Measure, or read what was measured, and publish it."""
    if options.list:
        print(_listing())
        return 0
    results = Results.load(options.again) if options.again else _measure(options)
    return _publish(results, options)


def _measure(options: Options) -> Results:
    names, quantities = _split(options.peers), _split(options.quantities)
    by_processor = options.processor_time or options.gate
    cases = replace(_plan(options).only(quantities), limit=options.limit)
    cases = by_processor_time(cases) if by_processor else cases
    peers = chosen(names or (gate.peers() if options.gate else ()))
    results = _results(options, by_processor)
    Runner(cases, [_environment(p, options) for p in peers], results, say, by_processor).run()
    everything = not (options.quick or options.gate or quantities)
    if (everything or "roofline" in quantities) and not (results.interrupted or results.roofline):
        results.roofline = roofline.measure(say, by_processor)
        results.save()
    return results


def _results(options: Options, by_processor: bool) -> Results:
    """Return empty results, or those of the run to be resumed."""
    results = Results(machine(**now(), measured="processor time" if by_processor else "wall time"))
    if options.resume:
        if options.json is None or not options.json.exists():
            raise ValueError("--resume continues the run in --json FILE; give that option, and a file that exists")
        results = Results.load(options.json)
        results.interrupted = False
    results.file = options.json
    return results


def _plan(options: Options) -> Plan:
    if options.gate:
        return plan.gate()
    return plan.quick() if options.quick else plan.full()


def _environment(peer: Peer, options: Options) -> Environment:
    if options.here:
        return Environment(peer, Path(sys.executable))
    return environment(peer, options.environments or default_folder(), options.install_limit, say)


def _publish(results: Results, options: Options) -> int:
    for table in page.tables(results):
        print(f"\n{table.text()}")
    if options.markdown:
        print(page.save(results, options.markdown))
    if options.plots:
        for file in plots.save(results, options.plots):
            print(file)
    if not options.gate:
        return 0
    verdicts = gate.judge(results)
    print(f"\n{gate.table(verdicts).text()}")
    return 0 if all(v.ok for v in verdicts) else 1


def _listing() -> str:
    peers = [f"  {p.name:<10} {p.title}: {', '.join(p.requirements) or 'this installation'}" for p in PEERS.values()]
    quantities = [f"  {name:<26} {title}" for name, title in QUANTITIES.items()]
    return "\n".join(
        ["peers:", *peers, "quantities:", *quantities, f"  {'roofline':<26} operations per second per kernel"]
    )


def _split(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.replace(" ", ",").split(",") if part)


def say(line: str) -> None:
    """Print a line of progress to the standard error, apart from the tables."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
