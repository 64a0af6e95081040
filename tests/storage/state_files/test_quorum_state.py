from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.errors import InvalidQuorumState
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.state_files.quorum_state import QuorumState

STATIC = (
    '{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
    '"currentVoters":[{"voterId":1}],"data_version":0}'
)
DYNAMIC = (
    '{"leaderId":1,"leaderEpoch":7,"votedId":-1,'
    '"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
)


@pytest.mark.parametrize("text", [STATIC, DYNAMIC])
def test_quorum_state_written_by_kafka_survives_a_round_trip(tmp_path: Path, text: str) -> None:
    (tmp_path / "quorum-state").write_text(text)

    state = QuorumState.read(tmp_path, DiskFiles())
    assert state is not None
    state.write(tmp_path, DiskFiles())

    assert text == (tmp_path / "quorum-state").read_text()


def test_formatted_directory_has_no_quorum_state(tmp_path: Path) -> None:
    assert QuorumState.read(tmp_path, DiskFiles()) is None


def test_quorum_state_fields_are_read_from_the_file() -> None:
    state = QuorumState(leader_id=3, leader_epoch=9, voters=(3, 4))

    assert '"currentVoters":[{"voterId":3},{"voterId":4}],"data_version":0}' in state.to_json()
    assert '"leaderId":3,"leaderEpoch":9,"votedId":-1' in state.to_json()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        STATIC.replace('"data_version":0', '"data_version":-1'),
        STATIC.replace('"leaderEpoch":2,', ""),
        STATIC.replace('"leaderEpoch":2', '"leaderEpoch":"x"'),
        STATIC.replace('[{"voterId":1}]', "7"),
    ],
)
def test_malformed_quorum_state_is_an_error(tmp_path: Path, text: str) -> None:
    """
    Starting over at epoch 0 could use an epoch twice.
    """
    (tmp_path / "quorum-state").write_text(text)

    with pytest.raises(InvalidQuorumState, match="quorum-state: not a quorum state"):
        QuorumState.read(tmp_path, DiskFiles())


def test_later_version_of_the_quorum_state_is_refused_with_advice(tmp_path: Path) -> None:
    (tmp_path / "quorum-state").write_text(STATIC.replace('"data_version":0', '"data_version":2'))

    with pytest.raises(InvalidQuorumState, match=r"neither 0 nor 1\. A later version of Barnabas"):
        QuorumState.read(tmp_path, DiskFiles())
