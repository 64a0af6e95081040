"""
The largest values of all fields, sent to a broker without an authorizer.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.sweep.sweep import LONG, OFTEN, ONCE, UNREAD, Sweep, apis, sweeping

pytestmark = pytest.mark.prove


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sweep]:
    with sweeping(tmp_path_factory.mktemp("open"), {}) as sweep:
        yield sweep


@pytest.mark.parametrize("api", apis(ONCE))
def test_largest_value_of_a_field_harms_nobody(sweep: Sweep, api: str) -> None:
    sweep.check(api, ONCE)


@pytest.mark.parametrize("api", apis(LONG))
def test_very_long_list_harms_nobody(sweep: Sweep, api: str) -> None:
    sweep.check(api, LONG)


@pytest.mark.parametrize("api", apis(OFTEN))
def test_thousand_largest_values_harm_nobody(sweep: Sweep, api: str) -> None:
    sweep.check(api, OFTEN)


@pytest.mark.parametrize("api", apis(UNREAD))
def test_largest_values_of_peers_that_do_not_read_harm_nobody(sweep: Sweep, api: str) -> None:
    sweep.check(api, UNREAD)
