from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.directories.directory import LogDirectory
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.state_files.meta_properties import META_PROPERTIES


@pytest.mark.parametrize(
    ("given", "hint"), [("dta", "; did you mean data?"), ("elsewhere", ""), ("a/b/c", "")]
)
def test_new_log_directory_names_one_beside_it_with_nearly_the_same_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, given: str, hint: str
) -> None:
    caplog.set_level("INFO", "barnabas")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / META_PROPERTIES).touch()
    (tmp_path / "dat").mkdir()
    LogDirectory.open(tmp_path / given, DiskFiles()).release()
    assert caplog.messages == [f"Creating the log directory {tmp_path / given}{hint}"]
