"""
The tools that read the files themselves.
"""

from __future__ import annotations

from tests.interop.tools.guide import Guide

DUMP = "kafka-dump-log"
STORAGE = "kafka-storage"


def files_are_dumped(guide: Guide) -> None:
    """
    ``kafka-dump-log``, of a topic's log and of its indexes.
    """
    guide("kafka-topics", "--create", "--topic", "dumped", "--config", "index.interval.bytes=1")
    for line in ("one\n", "two\n", "three\n"):
        guide("kafka-console-producer", "--topic", "dumped", given=line)
    directory = guide.broker.data / "dumped-0"
    log, index, times = (
        str(directory / f"{0:020}.{kind}") for kind in ("log", "index", "timeindex")
    )
    guide(DUMP, "--files", log)
    guide(DUMP, "--files", log, "--print-data-log")
    guide(DUMP, "--files", log, "--deep-iteration", "--skip-record-metadata")
    guide(DUMP, "--files", index)
    guide(DUMP, "--files", times)
    guide(DUMP, "--files", f"{index},{times}", "--index-sanity-check")
    guide(DUMP, "--files", str(directory / "nothing.log"))
    guide(DUMP)


def directories_are_formatted(guide: Guide) -> None:
    """
    ``kafka-storage`` knows the directory for what it is.
    """
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2",
        "controller.quorum.voters": "1@127.0.0.1:2",
        "log.dirs": str(guide.broker.data),
    }
    text = "".join(f"{name}={value}\n" for name, value in properties.items())
    config = ("-c", guide.file("server.properties", text))
    guide(STORAGE, "info", *config)
    guide(STORAGE, "format", *config, "-t", "AAAAAAAAAAAAAAAAAAAAAQ")
    guide(STORAGE, "version-mapping")
    guide(STORAGE, "feature-dependencies", "-f", "transaction.version=2")


PARTS = (files_are_dumped, directories_are_formatted)
