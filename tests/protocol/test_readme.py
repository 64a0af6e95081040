from __future__ import annotations

import re
from pathlib import Path

from barnabas.protocol.messages import REQUESTS

README = Path(__file__).parents[2] / "protocol" / "README.md"


def test_readme_lists_all_apis_and_their_versions() -> None:
    rows = re.findall(
        r"^\| (\d+) \| (\w+) \| (\S+) \| (\d*) ?\|$", README.read_text(), re.MULTILINE
    )

    assert [
        (
            str(key),
            REQUESTS[key].__name__.removesuffix("Request"),
            f"{api.versions[0]}-{api.versions[-1]}"
            if len(api.versions) > 1
            else str(api.versions[0]),
            "" if api.flexible is None else str(api.flexible),
        )
        for key, api in ((key, REQUESTS[key].api) for key in sorted(REQUESTS))
    ] == rows
