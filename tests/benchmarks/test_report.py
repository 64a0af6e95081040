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


def results(kafka: float, ours: float, busy: str = "0.10 cores") -> Results:
    figure = rate("produce", at_least=2.0)
    samples = {APACHE_KAFKA: [{figure.key: kafka}], BARNABAS: [{figure.key: ours}]}
    return Results(
        {"cores": "2", "busy before": busy},
        {"passes": "5"},
        [Measured("one", "", (figure,), samples)],
    )


def test_only_the_text_between_the_markers_is_rewritten() -> None:
    page = report.rewritten(PAGE, results(1000, 2500))

    row = "| produce | 1,000 rec/s | 2,500 rec/s | 2.50 | 2.50 | ≥ 2 | met |"
    assert row in page
    assert "| busy before | 0.10 cores |\n| passes | 5 |\n<!-- end -->\n\nThe end.\n" in page
    assert "<!-- end -->\n\nText between.\n\n<!-- machine -->\n" in page
    assert "an old table" not in page


def test_written_page_can_be_written_again() -> None:
    once = report.rewritten(PAGE, results(1000, 2500))

    assert once == report.rewritten(once, results(1000, 2500))


def test_line_below_its_goal_says_so() -> None:
    assert "≥ 2 | **short** |" in report.rewritten(PAGE, results(1000, 1999))
    assert "≥ 2 **short**" in report.table(results(1000, 1999))


def test_page_without_markers_stays_unchanged() -> None:
    assert "Nothing to see.\n" == report.rewritten("Nothing to see.\n", results(1, 2))


def test_report_of_a_busy_machine_says_so_first() -> None:
    busy, quiet = results(1, 2, "0.60 cores"), results(1, 2, "0.40 cores")

    assert "busy with something else" in report.rewritten(PAGE, busy)
    assert "(0.6 cores)" in report.table(busy).splitlines()[0]
    assert "was busy" not in report.rewritten(PAGE, quiet) + report.table(quiet)


def with_another() -> Results:
    [one] = results(1000, 2500).measured
    samples = {**one.samples, "Another": [{one.figures[0].key: 1500.0}]}
    did = Measured("one", "", one.figures, samples)
    failed = Measured("two", "", one.figures, one.samples, failed={"Another": "no such request"})
    return Results({"cores": "2"}, {}, [did, failed])


def test_further_broker_has_its_own_column() -> None:
    page = report.rewritten(PAGE, with_another())

    head = "| | Apache Kafka | Barnabas | Another | ratio | of the best | goal | |"
    rule = "|---|---:|---:|---:|---:|---:|---|---|"
    did = "| produce | 1,000 rec/s | 2,500 rec/s | 1,500 rec/s | 2.50 | 2.50 | ≥ 2 | met |"
    failed = did.replace("1,500 rec/s", "failed")
    assert "\n".join([head, rule, did, failed]) in page
    assert f"{failed}\n\n- Another failed at two: no such request\n<!-- end -->" in page
    terminal = report.table(with_another()).splitlines()
    assert terminal[0].split("  ")[0] == "median of the passes"
    assert "Barnabas          Another    ratio" in terminal[0]
    assert "2,500 rec/s      1,500 rec/s     2.50" in terminal[1]
    assert "Another failed at two: no such request" == terminal[-1]
