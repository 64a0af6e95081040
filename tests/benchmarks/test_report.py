"""
benchmarks.report: the table, and the page that it is put into.
"""

from __future__ import annotations

from benchmarks import report
from benchmarks.measure import rate
from benchmarks.results import APACHE_KAFKA, BARNABAS, Measured, Results

PAGE = """# Title

<!-- table -->
an old table
<!-- end -->

Text between.

<!-- machine -->
<!-- end -->

The end.
"""


def results(kafka: float, ours: float, load: str = "0.10 2.00 2.00") -> Results:
    figure = rate("produce", at_least=2.0)
    samples = {APACHE_KAFKA: [{figure.key: kafka}], BARNABAS: [{figure.key: ours}]}
    return Results(
        {"cores": "2", "load before": load},
        {"passes": "5"},
        [Measured("one", "", (figure,), samples)],
    )


def test_only_what_is_between_the_markers_is_written_anew() -> None:
    page = report.rewritten(PAGE, results(1000, 2500))

    row = "| produce | 1,000 rec/s | 2,500 rec/s | 2.50 | 2.50 | ≥ 2 | met |"
    assert row in page
    assert "| load before | 0.10 2.00 2.00 |\n| passes | 5 |\n<!-- end -->\n\nThe end.\n" in page
    assert "<!-- end -->\n\nText between.\n\n<!-- machine -->\n" in page
    assert "an old table" not in page


def test_a_page_that_was_written_can_be_written_again() -> None:
    once = report.rewritten(PAGE, results(1000, 2500))

    assert once == report.rewritten(once, results(1000, 2500))


def test_a_line_that_falls_short_says_so() -> None:
    assert "≥ 2 | **short** |" in report.rewritten(PAGE, results(1000, 1999))
    assert "≥ 2 **short**" in report.table(results(1000, 1999))


def test_a_page_without_markers_stays_as_it_is() -> None:
    assert "Nothing to see.\n" == report.rewritten("Nothing to see.\n", results(1, 2))


def test_a_run_on_a_busy_machine_says_so_first() -> None:
    busy, quiet = results(1, 2, "1.20 0.00 0.00"), results(1, 2, "0.90 9.00 9.00")

    assert "busy with something else" in report.rewritten(PAGE, busy)
    assert "(load 1.2)" in report.table(busy).splitlines()[0]
    assert "busy" not in report.rewritten(PAGE, quiet) + report.table(quiet)
