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


def results(kafka: float, ours: float) -> Results:
    figure = rate("produce", at_least=2.0)
    samples = {APACHE_KAFKA: [{figure.key: kafka}], BARNABAS: [{figure.key: ours}]}
    return Results({"cores": "2"}, {"passes": "5"}, [Measured("one", "", (figure,), samples)])


def test_only_what_is_between_the_markers_is_written_anew() -> None:
    page = report.rewritten(PAGE, results(1000, 2500))

    row = "| produce | 1,000 rec/s | 2,500 rec/s | 2.50 | 2.50 | ≥ 2 | met |"
    assert row in page
    assert "| cores | 2 |\n| passes | 5 |\n<!-- end -->\n\nThe end.\n" in page
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
