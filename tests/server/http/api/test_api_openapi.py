from __future__ import annotations

from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.support.api_client import HTTP, ask, described
from tests.support.server import running


def test_openapi_description_is_valid() -> None:
    OpenAPIV31SpecValidator(described()).validate()


def test_every_api_operation_has_a_unique_id() -> None:
    ids = [
        operation["operationId"]
        for path in described()["paths"].values()
        for operation in path.values()
    ]

    assert len(ids) == len(set(ids))


def test_openapi_bounds_and_defaults_come_from_the_fields() -> None:
    parameters = described()["paths"]["/api/v1/topics"]["get"]["parameters"]
    by_name = {each["name"]: each["schema"] for each in parameters}

    assert 1000 == by_name["limit"]["default"]
    assert (1, 10_000) == (by_name["limit"]["minimum"], by_name["limit"]["maximum"])
    assert "bytes_in" in by_name["sort"]["enum"]


async def test_openapi_description_covers_what_the_broker_serves() -> None:
    async with running(**HTTP) as broker:
        said = await ask(broker, "/openapi.json")

    assert described()["paths"] == said["paths"]
    assert described()["components"] == said["components"]
