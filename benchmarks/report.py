"""
A run's results as text: a table for the terminal, and the page ``docs/performance.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.measure import Figure, Goal
from benchmarks.results import Line, Results, is_dial

SIGNS: Final = {Goal.RATIO_AT_LEAST: "≥", Goal.RATIO_AT_MOST: "≤", Goal.AT_MOST: "≤"}

BUSY: Final = 0.25
"""
How much of each core others may use on a machine that is quiet.
"""


def table(results: Results) -> str:
    """
    For the terminal.
    """
    brokers = results.brokers()
    names = "".join(f"{name:>17}" for name in brokers)
    heads = f"{'median of the passes':44}{names}{'ratio':>9}{'best':>9}  goal"
    lines = [*_warning(results), heads]
    for line in results.lines():
        cells = "".join(f"{cell:>17}" for cell in _cells(line, brokers))
        ratios = f"{_ratio(line.ratio):>9}{_ratio(line.best_ratio):>9}"
        lines.append(f"{line.figure.title:44}{cells}{ratios}  {_goal(line)}".rstrip())
    lines += [f"{name}: skipped: {reason}" for name, reason in _skipped(results)]
    return "\n".join([*lines, *_failed(results)])


def machine_line(results: Results) -> str:
    """
    The machine, in one paragraph.
    """
    return ", ".join(f"{name}: {value}" for name, value in results.machine.items())


def rewritten(page: str, results: Results) -> str:
    """
    A page with what is between its markers made anew: ``<!-- table -->`` to ``<!-- end -->``, and
    the same for ``dial`` and ``machine``.
    """
    page = _between(page, "table", _markdown_table(results))
    page = _between(page, "dial", _markdown_dial(results))
    return _between(page, "machine", _markdown_machine(results))


def _between(page: str, name: str, text: str) -> str:
    head, start, rest = page.partition(f"<!-- {name} -->\n")
    end = rest.find("<!-- end -->")
    return page if end < 0 else f"{head}{start}{text}\n{rest[end:]}"


def rewrite_page(path: Path, results: Results) -> None:
    """
    Put the results into a page that is there.
    """
    path.write_text(rewritten(path.read_text(), results))


def _warning(results: Results) -> list[str]:
    """
    What to say first of a run on a machine that did something else as well.
    """
    busy = float(results.machine.get("busy before", "0").split()[0])
    if busy <= BUSY * int(results.machine.get("cores", "1")):
        return []
    return [
        f"**The machine was busy with something else before this run already ({busy:g} cores): the "
        "rates and latencies of all brokers tell little, processor time and memory more.**",
        "",
    ]


def _markdown_table(results: Results) -> str:
    brokers = results.brokers()
    rows = [
        *_warning(results),
        f"| | {' | '.join(brokers)} | ratio | of the best | goal | |",
        f"|---|{'---:|' * len(brokers)}---:|---:|---|---|",
    ]
    for line in results.lines():
        if line.figure.group == "megabytes" or is_dial(line.measured):
            continue
        cells = [line.figure.title.replace("- ", "&nbsp;&nbsp;", 1)]
        cells += _cells(line, brokers)
        cells += [_ratio(line.ratio), _ratio(line.best_ratio), *_goal_cells(line)]
        rows.append(f"| {' | '.join(cells)} |")
    blank = " |" * (len(brokers) + 3)
    rows += [f"| {name} | {reason} |{blank}" for name, reason in _skipped(results)]
    failed = [f"- {sentence}" for sentence in _failed(results)]
    return "\n".join([*rows, *([""] if failed else []), *failed])


def _markdown_dial(results: Results) -> str:
    """
    What each promise lets through, and how long an answer takes, in a row for each.
    """
    names = results.brokers()
    keys = ("megabytes_per_second", "p50", "p99")
    heads = [f"{name}: {key}" for key in ("MB/s", "p50", "p99") for name in names]
    rows = [f"| | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for measured in filter(is_dial, results.measured):
        figures = {figure.key: figure for figure in measured.figures}
        cells = [
            _amount(measured.median(name, figures[key]), figures[key])
            for key in keys
            for name in names
        ]
        rows.append(f"| {figures['per_second'].title.removeprefix('- ')} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _markdown_machine(results: Results) -> str:
    rows = [
        f"| {name} | {value} |"
        for name, value in (*results.machine.items(), *results.options.items())
    ]
    return "\n".join(["| | |", "|---|---|", *rows])


def _cells(line: Line, brokers: Sequence[str]) -> list[str]:
    """
    The medians of all of them; why there is none is said below the table.
    """
    measured, figure = line.measured, line.figure
    return [
        "failed" if name in measured.failed else _amount(measured.median(name, figure), figure)
        for name in brokers
    ]


def _amount(value: float | None, figure: Figure) -> str:
    if value is None:
        return "-"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {figure.unit}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _goal(line: Line) -> str:
    return " ".join(_goal_cells(line)).strip()


def _goal_cells(line: Line) -> tuple[str, str]:
    """
    The goal, and whether it is met.
    """
    figure = line.figure
    if figure.goal is None:
        return "", ""
    unit = f" {figure.unit}" if figure.goal is Goal.AT_MOST else ""
    met = {True: "met", False: "**short**", None: ""}[line.is_met]
    return f"{SIGNS[figure.goal]} {figure.limit:.3g}{unit}", met


def _skipped(results: Results) -> Iterable[tuple[str, str]]:
    return ((one.name, one.skipped) for one in results.measured if one.skipped)


def _failed(results: Results) -> list[str]:
    """
    What a further broker could not do, in a sentence for each.
    """
    return [
        f"{name} failed at {one.name}: {reason}"
        for one in results.measured
        for name, reason in one.failed.items()
    ]
