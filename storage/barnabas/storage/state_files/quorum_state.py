"""
``quorum-state``: who leads the metadata quorum, and in which epoch (Kafka's FileQuorumStateStore).

One JSON object on one line, without a newline at the end. Version 0 belongs to a quorum whose
voters are configured, version 1 to one that keeps them in the log (KIP-853)::

    {"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,
     "currentVoters":[{"voterId":1}],"data_version":0}
    {"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",
     "data_version":1}

The epoch grows by one at each start, and no two starts may share one: the file is on the disk
before anything is written in its epoch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Self

from barnabas.protocol.structs import struct
from barnabas.storage.errors import WRITTEN_LATER, InvalidQuorumState
from barnabas.storage.fs.interface import Files

QUORUM_STATE: Final = "quorum-state"
NO_ONE: Final = -1
CURRENT_VERSION: Final = 1

_ZERO_UUID_TEXT: Final = "A" * 22


@struct(kw_only=True)
class QuorumState:
    """
    The outcome of the last election.
    """

    leader_id: int = NO_ONE
    leader_epoch: int = 0
    voted_id: int = NO_ONE
    voted_directory_id: str = _ZERO_UUID_TEXT
    voters: tuple[int, ...] = ()
    data_version: int = 0

    @classmethod
    def read(cls, directory: Path, files: Files) -> Self | None:
        """
        The state kept in *directory*, ``None`` when there is none yet.

        Raises:
            InvalidQuorumState: it cannot be understood.
            KafkaStorageError: it cannot be read.
        """
        path = directory / QUORUM_STATE
        try:
            data = files.read_bytes(path)
        except FileNotFoundError:
            return None
        try:
            fields = json.loads(data)
            version = fields["data_version"]
            if isinstance(version, int) and version > CURRENT_VERSION:
                raise InvalidQuorumState(
                    f"{path}: data_version {version} is neither 0 nor 1. {WRITTEN_LATER}"
                )
            return cls._parse(fields)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidQuorumState(f"{path}: not a quorum state: {error!r}") from error

    @classmethod
    def _parse(cls, fields: dict[str, Any]) -> Self:
        version = fields["data_version"]
        if version not in (0, 1):
            raise ValueError(f"data_version {version} is neither 0 nor 1")
        voters = [] if version else fields["currentVoters"] or []
        return cls(
            leader_id=int(fields["leaderId"]),
            leader_epoch=int(fields["leaderEpoch"]),
            voted_id=int(fields["votedId"]),
            voted_directory_id=str(fields["votedDirectoryId"]) if version else _ZERO_UUID_TEXT,
            voters=tuple(int(voter["voterId"]) for voter in voters),
            data_version=version,
        )

    def write(self, directory: Path, files: Files) -> None:
        """
        Replace the file; it is on the disk afterwards.
        """
        files.write_atomically(directory / QUORUM_STATE, self.to_json().encode())

    def to_json(self) -> str:
        """
        The content of the file.
        """
        fields: dict[str, Any] = {
            "leaderId": self.leader_id,
            "leaderEpoch": self.leader_epoch,
            "votedId": self.voted_id,
        }
        if self.data_version:
            fields["votedDirectoryId"] = self.voted_directory_id
        else:
            voters = [{"voterId": voter} for voter in self.voters]
            fields = {"clusterId": "", **fields, "appliedOffset": 0, "currentVoters": voters}
        return json.dumps({**fields, "data_version": self.data_version}, separators=(",", ":"))
