"""The page of a robot's identification: what was wrong with the log, what was found, and how well it predicts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from costate.identify.result import Identification
from costate.report.report import Report


def identification_report(result: Identification, files: Mapping[str, str] | None = None) -> Report:
    """Return the page. files: names of files next to it -> what they are."""
    name = result.prior.name
    source = result.log.source if result.log is not None else ""
    report = Report(f"Identification of {name}", source)
    held = result.test or result.train
    joints = [j.name for j in result.regressor.model.joints for _ in range(j.nv)]
    report.facts(
        {
            "rows used": len(result.train.index) + (len(result.test.index) if result.test else 0),
            "parameters told apart": f"{result.base.rank} of {len(result.names)}",
            "notes on the log": len(result.notes),
            "worst joint, error held out by noise": f"{float((held.after / np.maximum(result.sigma, 1e-300)).max()):.3g}",
        }
    )
    _log_section(report, result)
    _errors_section(report, result, joints)
    _residuals_section(report, result, joints)
    _parameters_section(report, result)
    if files:
        report.section("Files")
        report.links(files)
    return report


def _log_section(report: Report, result: Identification) -> None:
    report.section("What was wrong with the log, and what was done")
    if not result.notes:
        report.text("Nothing was found to be wrong.")
        return
    rows = []
    for note in result.notes:
        about, colon, text = note.partition(": ")
        short = bool(colon) and len(about) <= 16
        rows.append({"about": about if short else "", "what was found, and done": text if short else note})
    report.table(rows)
    clock = result.clock
    if clock is not None and (clock.tick is not None or clock.repeated):
        t, start = clock.times, clock.stamps[0] - clock.times[0]
        with report.row():
            report.plot(
                {"stamps": 1e3 * np.diff(clock.stamps), "repaired": 1e3 * np.diff(t)},
                t[1:],
                title="Time from row to row",
                x_label="t [s]",
                y_label="ms",
            )
            report.plot(
                {"stamp - repaired": 1e3 * (clock.stamps - t - start)},
                t,
                title="Stamps, off by",
                x_label="t [s]",
                y_label="ms",
            )


def _errors_section(report: Report, result: Identification, joints: list[str]) -> None:
    report.section("Errors of torques")
    rows = []
    for k, name in enumerate(joints):
        row = {"joint": name, "robot as given": result.train.before[k], "identified": result.train.after[k]}
        if result.test is not None:
            row |= {"given, held out": result.test.before[k], "identified, held out": result.test.after[k]}
        row |= {"without filter": (result.test or result.train).raw[k], "noise": result.sigma[k]}
        if result.validation is not None:
            row |= {
                "other log [%]": 100 * result.validation.all[k],
                "while moving [%]": 100 * result.validation.moving[k],
            }
        rows.append(row)
    wide = result.filter is not None and result.filter.half
    said = (
        f" Torques and model went through the same filter of {2 * result.filter.half + 1} rows."
        if wide and result.filter
        else ""
    )
    report.table(rows, caption=f"Root mean square [N m or N]; stretches held out were not fitted.{said}")
    if result.drive is not None and len(result.drive.errors) > 1:
        laws = [
            {
                "law of friction": law,
                "error, by Coulomb + viscous": mean,
                "+-": doubt,
                "taken": law == result.drive.law.name,
            }
            for law, (_, mean, doubt) in result.drive.errors.items()
        ]
        report.table(laws, caption="Laws of friction in cross-validation.")
    if result.elastic is not None:
        twisting = [
            {"joint": name, "stiffness": float(k), "from": float(low), "to": float(high)}
            for name, k, low, high in zip(
                result.elastic.joints, result.elastic.stiffness, *result.elastic.interval, strict=True
            )
        ]
        report.table(twisting, caption="Elastic joints: stiffness with its 95 % interval [N m/rad or N/m].")


def _residuals_section(report: Report, result: Identification, joints: list[str]) -> None:
    log, predicted = result.log, result.predicted
    if log is None or predicted is None:
        return
    report.section("Torques and residuals over time")
    t = np.arange(len(log), dtype=float) if log.t is None else log.t
    out = np.full(len(log), np.nan)
    if result.test is not None:
        out[result.test.index] = 0.0
    with report.row():
        for k, name in enumerate(joints):
            error = log.tau[:, k] - predicted[:, k]
            series = {"measured": log.tau[:, k], "identified": predicted[:, k], "residual": error}
            if result.test is not None:
                series["residual, held out"] = error + out
            report.plot(series, t, title=name, x_label="t [s]", y_label="N m or N")


def _parameters_section(report: Report, result: Identification) -> None:
    report.section("Parameters, with 95 % intervals")
    given, wide = result.base.project(result.regressor.pi()), result.interval[1] - result.beta
    rows = [
        {
            "combination": result.base.expression(k),
            "given": float(given[k]),
            "found": float(result.beta[k]),
            "+- 95 %": float(wide[k]),
            "determined": bool(wide[k] <= abs(result.beta[k])),
        }
        for k in range(result.base.rank)
    ]
    report.table(rows, caption="Torques depend only on these combinations of parameters.")
    links = [
        {"parameter": name, "given": float(a), "in the file written": float(b)}
        for name, a, b in zip(result.names, result.regressor.pi(), result.values, strict=True)
    ]
    report.table(links, caption="Single parameters: the physically possible set that fits, nearest to the robot given.")
