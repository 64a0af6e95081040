"""
The largest values of all fields, sent by a user without any permission.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.sweep.sweep import OFTEN, ONCE, UNREAD, Sweep, a_third, apis, sweeping
from tests.interop.sweep.world import AUTHORIZER

pytestmark = pytest.mark.prove


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sweep]:
    with sweeping(tmp_path_factory.mktemp("guarded"), AUTHORIZER) as sweep:
        yield sweep


# Most requests of this user end at the check of a permission.
@pytest.mark.parametrize("api", a_third(apis(ONCE)))
def test_largest_value_of_a_field_harms_nobody(sweep: Sweep, api: str) -> None:
    sweep.check(api, ONCE)


@pytest.mark.parametrize("api", apis(OFTEN))
def test_thousand_largest_values_harm_nobody(sweep: Sweep, api: str) -> None:
    sweep.check(api, OFTEN)


@pytest.mark.parametrize("api", apis(UNREAD))
def test_largest_values_of_peers_that_do_not_read_harm_nobody(sweep: Sweep, api: str) -> None:
    sweep.check(api, UNREAD)
