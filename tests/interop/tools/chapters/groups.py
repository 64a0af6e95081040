"""
``kafka-consumer-groups``, ``kafka-share-groups`` and ``kafka-groups``: members, offsets, and moving
them.
"""

from __future__ import annotations

from tests.interop.tools.guide import Guide

GROUPS = "kafka-consumer-groups"
SHARE_GROUPS = "kafka-share-groups"
STREAMS_GROUPS = "kafka-streams-groups"
TOPICS = "kafka-topics"


def _fill(guide: Guide, topic: str, partitions: int = 2) -> None:
    guide(TOPICS, "--create", "--topic", topic, "--partitions", str(partitions))
    lines = "".join(f"{key}:value {number} of {key}\n" for number in range(2) for key in "abcdef")
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    guide("kafka-console-producer", "--topic", topic, *keyed, given=lines)


def groups_come_and_go(guide: Guide) -> None:
    """
    A classic one: nobody, one member, the end of it, and its deletion.
    """
    _fill(guide, "flights")
    of_group = (GROUPS, "--describe", "--group", "pilots")
    guide(GROUPS, "--list")
    guide(*of_group)
    guide(*of_group, "--state")
    guide(*of_group, "--members")
    consume = ("kafka-console-consumer", "--topic", "flights", "--group", "pilots")
    settings = ("--from-beginning", "--command-property", "client.id=console")
    member = guide.start(*consume, *settings)
    guide.until(lambda seen: "Stable" in seen, *of_group, "--state")
    for details in (
        (),
        ("--offsets",),
        ("--offsets", "--verbose"),
        ("--members",),
        ("--members", "--verbose"),
        ("--state",),
        ("--state", "--verbose"),
        ("--members", "--state"),
    ):
        if details[:1] in ((), ("--offsets",)):
            guide.until(lambda seen: "-               " not in seen, *of_group)
        guide(*of_group, *details)
    _list_groups(guide)
    guide(GROUPS, "--delete", "--group", "pilots")
    guide(GROUPS, "--delete-offsets", "--group", "pilots", "--topic", "flights")
    guide(
        GROUPS,
        "--reset-offsets",
        "--group",
        "pilots",
        "--topic",
        "flights",
        "--to-earliest",
        "--execute",
    )
    member.interrupt()
    guide.until(lambda seen: "Empty" in seen, *of_group, "--state")
    guide(*of_group)
    guide(*of_group, "--members")
    guide(*of_group, "--state")
    guide(*of_group, "--validate-regex", "a.*")
    _list_groups(guide)
    guide(GROUPS, "--delete", "--group", "pilots")
    guide(GROUPS, "--delete", "--group", "pilots")
    guide(*of_group)
    guide(GROUPS, "--list")


def _list_groups(guide: Guide) -> None:
    guide(GROUPS, "--list", "--state")
    guide(GROUPS, "--list", "--state", "stable,empty")
    guide(GROUPS, "--list", "--state", "stable")
    guide(GROUPS, "--list", "--type")
    guide(GROUPS, "--list", "--type", "classic")
    guide(GROUPS, "--list", "--type", "consumer")
    guide(GROUPS, "--list", "--state", "sleepy")
    guide(GROUPS, "--list", "--type", "strange")
    guide(GROUPS, "--describe", "--all-groups")
    guide(GROUPS, "--describe", "--all-groups", "--state")
    guide("kafka-groups", "--list")
    guide("kafka-groups", "--list", "--consumer")
    guide("kafka-groups", "--list", "--share")
    guide("kafka-groups", "--list", "--streams")
    guide("kafka-groups", "--list", "--group-type", "classic")
    guide("kafka-groups", "--list", "--group-type", "consumer")
    guide("kafka-groups", "--list", "--protocol", "consumer")
    guide("kafka-groups", "--list", "--protocol", "other")
    guide("kafka-groups", "--list", "--group-type", "classic", "--protocol", "")


def groups_of_the_next_protocol(guide: Guide) -> None:
    """
    With ``group.protocol=consumer``: while a member is there, after it has left, and the end.
    """
    _fill(guide, "trains")
    consume = ("kafka-console-consumer", "--topic", "trains", "--group", "drivers")
    next_protocol = ("--command-property", "group.protocol=consumer")
    settings = ("--command-property", "client.id=console", "--from-beginning")
    of_group = (GROUPS, "--describe", "--group", "drivers")
    member = guide.start(*consume, *settings, *next_protocol)
    guide.until(lambda seen: "Stable" in seen, *of_group, "--state")
    guide.until(lambda seen: "-               " not in seen, *of_group)
    for details in (
        (),
        ("--offsets", "--verbose"),
        ("--members",),
        ("--members", "--verbose"),
        ("--state",),
        ("--state", "--verbose"),
        ("--validate-regex", "t.*"),
        ("--validate-regex", "t("),
    ):
        guide(*of_group, *details)
    _list_groups(guide)
    guide(GROUPS, "--delete", "--group", "drivers")
    guide(GROUPS, "--delete-offsets", "--group", "drivers", "--topic", "trains")
    move = ("--topic", "trains", "--to-earliest", "--execute")
    guide(GROUPS, "--reset-offsets", "--group", "drivers", *move)
    member.interrupt()
    guide.until(lambda seen: "Empty" in seen, *of_group, "--state")
    guide(*of_group, "--members", "--verbose")
    guide(*of_group, "--state", "--verbose")
    guide(GROUPS, "--reset-offsets", "--group", "drivers", *move)
    guide(*consume, *settings[:2], *next_protocol, "--max-messages", "12")
    guide(*of_group)
    guide(GROUPS, "--delete-offsets", "--group", "drivers", "--topic", "trains")
    guide(GROUPS, "--delete", "--group", "drivers")
    guide(*of_group)


def groups_share_records(guide: Guide) -> None:
    """
    A share group: nobody, one member, offsets that are moved and forgotten, and its deletion.
    """
    _fill(guide, "parcels", partitions=1)  # of several, either may be read first
    of_group = (SHARE_GROUPS, "--describe", "--group", "couriers")
    set_start = ("--alter", "--entity-type", "groups", "--entity-name", "couriers")
    guide("kafka-configs", *set_start, "--add-config", "share.auto.offset.reset=earliest")
    guide(SHARE_GROUPS, "--list")
    guide(*of_group)
    consume = ("kafka-console-share-consumer", "--topic", "parcels", "--group", "couriers")
    settings = ("--command-property", "client.id=console")
    guide(*consume, *settings, "--max-messages", "12", "--timeout-ms", "30000")
    guide.until(lambda seen: "Empty" in seen, *of_group, "--state")
    member = guide.start(*consume, *settings)
    guide.until(lambda seen: "Stable" in seen, *of_group, "--state")
    guide.until(lambda seen: "parcels:0" in seen, *of_group, "--members")
    for details in (
        (),
        ("--offsets",),
        ("--offsets", "--verbose"),
        ("--members",),
        ("--members", "--verbose"),
        ("--state",),
        ("--state", "--verbose"),
    ):
        guide(*of_group, *details)
    for state in ((), ("stable",), ("empty",), ("sleepy",)):
        guide(SHARE_GROUPS, "--list", "--state", *state)
    guide(SHARE_GROUPS, "--describe", "--all-groups")
    guide("kafka-groups", "--list", "--share")
    guide(GROUPS, "--describe", "--group", "couriers")
    guide(GROUPS, "--list", "--type", "share")
    change = ("--topic", "parcels", "--to-earliest", "--execute")
    guide(SHARE_GROUPS, "--reset-offsets", "--group", "couriers", *change)
    guide(SHARE_GROUPS, "--delete-offsets", "--group", "couriers", "--topic", "parcels")
    guide(SHARE_GROUPS, "--delete", "--group", "couriers")
    member.interrupt()
    guide.until(lambda seen: "Empty" in seen, *of_group, "--state")
    guide(*of_group)
    guide(*of_group, "--members")
    for rule in (
        ("--to-earliest",),
        ("--to-latest",),
        ("--to-datetime", "2001-02-03T04:05:06.000"),
    ):
        for how in ("--dry-run", "--execute"):
            topics = ("--topic", "parcels", *rule, how)
            guide(SHARE_GROUPS, "--reset-offsets", "--group", "couriers", *topics)
        guide(*of_group)
    guide(SHARE_GROUPS, "--reset-offsets", "--group", "couriers", "--topic", "nothing", *change[2:])
    guide(SHARE_GROUPS, "--delete-offsets", "--group", "couriers", "--topic", "nothing")
    guide(SHARE_GROUPS, "--delete-offsets", "--group", "couriers", "--topic", "parcels")
    guide(*of_group)
    guide(SHARE_GROUPS, "--delete-offsets", "--group", "nobody", "--topic", "parcels")
    guide(SHARE_GROUPS, "--delete", "--group", "couriers")
    guide(SHARE_GROUPS, "--delete", "--group", "couriers")
    guide(*of_group)
    guide(SHARE_GROUPS, "--list")


def offsets_are_moved(guide: Guide) -> None:
    """
    By every rule, tried and done, exported and imported, and deleted.
    """
    _fill(guide, "ships")
    _fill(guide, "boats")
    for topic in ("ships", "boats"):
        consume = ("--topic", topic, "--group", "sailors", "--from-beginning")
        guide("kafka-console-consumer", *consume, "--max-messages", "12")
    guide.until(lambda seen: "Empty" in seen, GROUPS, "--describe", "--group", "sailors", "--state")
    reset = (GROUPS, "--reset-offsets", "--group", "sailors")
    all_topics = (*reset, "--all-topics")
    guide(*all_topics, "--to-current", "--dry-run")
    for rule in (
        ("--to-earliest",),
        ("--to-latest",),
        ("--to-offset", "2"),
        ("--to-offset", "999"),
        ("--shift-by", "-1"),
        ("--shift-by", "100"),
        ("--shift-by", "-100"),
        ("--to-datetime", "2001-02-03T04:05:06.000"),
        ("--to-datetime", "2101-02-03T04:05:06.000"),
        ("--by-duration", "P0DT0H0M0S"),
        ("--by-duration", "P3000D"),
    ):
        guide(*all_topics, *rule, "--dry-run")
        guide(*reset, "--topic", "ships:0,1", *rule, "--execute")
    guide(*all_topics, "--to-earliest")
    guide(*reset, "--topic", "ships:1", "--topic", "boats", "--to-offset", "1", "--execute")
    exported = guide(*all_topics, "--to-current", "--export", "--dry-run").out
    file = guide.file("offsets.csv", exported.replace(",1\n", ",3\n"))
    guide(*reset, "--from-file", file, "--dry-run")
    guide(*reset, "--from-file", file, "--execute")
    guide(GROUPS, "--describe", "--group", "sailors")
    both = ("--group", "sailors", "--group", "passengers")
    guide(GROUPS, "--reset-offsets", *both, "--topic", "ships:0", "--to-earliest", "--execute")
    guide(GROUPS, "--reset-offsets", *both, "--all-topics", "--to-current", "--export", "--dry-run")
    for wrong in (
        (*reset, "--to-earliest", "--dry-run"),
        (*reset, "--topic", "nothing", "--to-earliest", "--dry-run"),
        (*reset, "--topic", "ships:7", "--to-earliest", "--execute"),
        (*all_topics, "--to-datetime", "yesterday", "--dry-run"),
        (*all_topics, "--by-duration", "a day", "--dry-run"),
        (*all_topics, "--to-earliest", "--to-latest", "--dry-run"),
        (*all_topics, "--dry-run"),
        (GROUPS, "--reset-offsets", "--topic", "ships", "--to-earliest", "--dry-run"),
    ):
        guide(*wrong)
    delete = (GROUPS, "--delete-offsets", "--group", "sailors", "--topic")
    guide(*delete, "ships:1")
    guide(*delete, "ships:1")
    guide(*delete, "boats")
    guide(*delete, "nothing")
    guide(*delete, "ships:9")
    guide(GROUPS, "--delete-offsets", "--group", "nobody", "--topic", "ships")
    guide(GROUPS, "--describe", "--group", "sailors")
    guide(GROUPS, "--delete", *both)
    guide(GROUPS, "--delete", "--all-groups")
    guide(GROUPS, "--list")


def groups_without_sense(guide: Guide) -> None:
    """
    What the tools refuse themselves.
    """
    guide(GROUPS)
    guide(GROUPS, "--describe")
    guide(GROUPS, "--delete", "--group", "a", "--topic", "b")
    guide(GROUPS, "--validate-regex", "a(")
    guide(GROUPS, "--describe", "--group", "")
    guide(GROUPS, "--describe", "--group", "a", "--state", "stable")
    for tool in (SHARE_GROUPS, STREAMS_GROUPS):
        guide(tool)
        guide(tool, "--list")
        guide(tool, "--describe")
        guide(tool, "--describe", "--group", "nobody")
        guide(tool, "--describe", "--group", "nobody", "--members")
        guide(tool, "--delete", "--group", "nobody")
    guide("kafka-groups")
    guide("kafka-groups", "--list", "--consumer", "--share")
    guide("kafka-groups", "--list", "--group-type", "strange")


PARTS = (
    groups_come_and_go,
    offsets_are_moved,
    groups_of_the_next_protocol,
    groups_share_records,
    groups_without_sense,
)
