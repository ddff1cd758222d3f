"""`costate bench`: Costate beside other libraries, in one run; tables, plots, JSON, a page; and a gate."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from costate.bench.plan import Plan
    from costate.bench.results import Results
    from costate.bench.venvs import Environment


def _split(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.replace(" ", ",").split(",") if part)


@dataclass(frozen=True)
class Options:
    peers: Annotated[str, tyro.conf.arg(metavar="NAME,NAME")] = ""
    """Libraries to compare with; default: all of them (see --list)."""
    quantities: Annotated[str, tyro.conf.arg(metavar="NAME,NAME")] = ""
    """What to measure; default: everything (see --list)."""
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
    """Folder of the peers' virtual environments; default: costate/bench in the cache. Each is made once, and kept."""
    here: bool = False
    """Run peers in the environment of Costate instead, as far as they are installed there."""
    processor_time: bool = False
    """Count processor time instead of time, for a busy machine; leaves out cold starts and threads. The gate always does."""
    install_limit: float = 300.0
    """Seconds that installing a peer may take."""
    limit: float = 150.0
    """Seconds that a peer may take to prepare a case and to compute it once."""
    resume: bool = False
    """Go on with the run that --json holds: measure what is missing there."""
    again: Path | None = None
    """Measure nothing: tables, page and plots of an earlier run's JSON."""


def run(options: Options) -> int:
    if options.list:
        print(_listing())
        return 0
    if options.again:
        from costate.bench.results import Results

        results = Results.load(options.again)
    else:
        results = _measure(options)
    return _publish(results, options)


def _measure(options: Options) -> Results:
    from dataclasses import replace

    from costate.bench import gate, peer, roofline
    from costate.bench.plan import by_processor_time
    from costate.bench.runner import Runner

    plan, names, quantities = _plan(options), _split(options.peers), _split(options.quantities)
    plan = replace(plan.only(quantities), limit=options.limit)
    peers = peer.chosen(names or (gate.peers() if options.gate else ()))
    by_processor = options.processor_time or options.gate
    plan = by_processor_time(plan) if by_processor else plan
    results = _results(options, by_processor)
    runner = Runner(plan, [_environment(p, options) for p in peers], results, say, by_processor)
    runner.run()
    everything = not (options.quick or options.gate or quantities)
    if (everything or "roofline" in quantities) and not (results.interrupted or results.roofline):
        results.roofline = roofline.measure(say, by_processor)
        results.save()
    return results


def _results(options: Options, by_processor: bool) -> Results:
    """Empty, or those of the run that shall go on."""
    from costate.bench.results import Results
    from costate.bench.table import machine, now

    clock = "processor time" if by_processor else "time"
    results = Results(machine(**now(), counted=clock))
    if options.resume:
        if options.json is None or not options.json.exists():
            raise ValueError("--resume goes on with the run in --json FILE, which must be there")
        results = Results.load(options.json)
        results.interrupted = False
    results.file = options.json
    return results


def _plan(options: Options) -> Plan:
    from costate.bench import plan

    if options.gate:
        return plan.gate()
    return plan.quick() if options.quick else plan.full()


def _environment(peer, options: Options) -> Environment:
    from costate.bench.venvs import Environment, default_folder, environment

    if options.here:
        return Environment(peer, Path(sys.executable))
    return environment(peer, options.environments or default_folder(), options.install_limit, say)


def _publish(results: Results, options: Options) -> int:
    from costate.bench import gate, page, plots

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
    from costate.bench.peer import PEERS
    from costate.bench.plan import QUANTITIES

    peers = [f"  {p.name:<10} {p.title}: {', '.join(p.requirements) or 'this installation'}" for p in PEERS.values()]
    quantities = [f"  {name:<26} {title}" for name, title in QUANTITIES.items()]
    return "\n".join(
        ["peers:", *peers, "quantities:", *quantities, f"  {'roofline':<26} operations per second per kernel"]
    )


def say(line: str) -> None:
    """Progress, apart from the tables."""
    print(line, file=sys.stderr, flush=True)
