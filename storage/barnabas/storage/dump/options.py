"""
The options of the command line.

They are those of ``kafka-dump-log.sh``, and they are parsed as its library joptsimple does:
``--files x``, ``--files=x`` and ``-files x`` are the same, names are not shortened, and a word that
belongs to no option is ignored. A number is parsed when it is needed: a bad one is an error after
the output of everything in front of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.protocol.structs import struct
from barnabas.storage.dump.failure import DumpFailure
from barnabas.storage.dump.java_text import parse_long

_LARGEST_INT: Final = 2**31 - 1
STRING_DECODER: Final = "org.apache.kafka.tools.api.StringDecoder"


@struct(kw_only=True)
class DumpOption:
    """
    One option.

    Args:
        argument: the name of its argument in the help; empty if it takes none.
        optional: whether the argument may be left out.
    """

    name: str
    help: str
    argument: str = ""
    optional: bool = False
    default: str = ""


OPTIONS: Final[Mapping[str, DumpOption]] = {
    option.name: option
    for option in (
        DumpOption(
            name="cluster-metadata-decoder",
            help="If set, log data will be parsed as cluster metadata records.",
        ),
        DumpOption(
            name="deep-iteration",
            help="If set, uses deep instead of shallow iteration. Automatically set if "
            "print-data-log is enabled.",
        ),
        DumpOption(
            name="files",
            help="REQUIRED: The comma separated list of data and index log files to be dumped.",
            argument="<String: file1, file2, ...>",
        ),
        # Kafka's tool does not have this one.
        DumpOption(
            name="format",
            help="How to print: as text, or as json, one object a line.",
            argument="<String: text|json>",
            default="text",
        ),
        DumpOption(name="help", help="Print usage information."),
        DumpOption(
            name="index-sanity-check",
            help="If set, just checks the index sanity without printing its content. This is the "
            "same check that is executed on broker startup to determine if an index needs "
            "rebuilding or not.",
        ),
        DumpOption(
            name="key-decoder-class",
            help="If set, used to deserialize the keys. This class should implement "
            "org.apache.kafka.tools.api.Decoder trait. Custom jar should be available in "
            "kafka/libs directory.",
            argument="[String]",
            optional=True,
            default=STRING_DECODER,
        ),
        DumpOption(
            name="max-bytes",
            help="Limit the amount of total batches read in bytes avoiding reading the whole .log "
            "file(s).",
            argument="<Integer: size>",
            default=str(_LARGEST_INT),
        ),
        DumpOption(
            name="max-message-size",
            help="Size of largest message.",
            argument="<Integer: size>",
            default=str(5 * 1024 * 1024),
        ),
        DumpOption(
            name="offsets-decoder",
            help="If set, log data will be parsed as offset data from the __consumer_offsets "
            "topic.",
        ),
        DumpOption(
            name="print-data-log",
            help="If set, printing the messages content when dumping data logs. Automatically set "
            "if any decoder option is specified.",
        ),
        DumpOption(
            name="remote-log-metadata-decoder",
            help="If set, log data will be parsed as TopicBasedRemoteLogMetadataManager (RLMM) "
            "metadata records. Instead, the value-decoder-class option can be used if a custom "
            "RLMM implementation is configured.",
        ),
        DumpOption(
            name="share-group-state-decoder",
            help="If set, log data will be parsed as share group state data from the "
            "__share_group_state topic.",
        ),
        DumpOption(
            name="skip-record-metadata",
            help="Skip metadata when printing records. This flag also skips control records.",
        ),
        DumpOption(
            name="transaction-log-decoder",
            help="If set, log data will be parsed as transaction metadata from the "
            "__transaction_state topic.",
        ),
        DumpOption(
            name="value-decoder-class",
            help="If set, used to deserialize the messages. This class should implement "
            "org.apache.kafka.tools.api.Decoder trait. Custom jar should be available in "
            "kafka/libs directory.",
            argument="[String]",
            optional=True,
            default=STRING_DECODER,
        ),
        DumpOption(
            name="verify-index-only",
            help="If set, just verify the index log without printing its content.",
        ),
        DumpOption(name="version", help="Display Kafka version."),
    )
}

_PRINTING: Final = frozenset(
    name for name in OPTIONS if name.endswith(("-decoder", "-decoder-class", "print-data-log"))
)


class DumpOptions:
    """
    The options that the user has given, by their names, and their values.
    """

    def __init__(self, given: Mapping[str, Sequence[str]]) -> None:
        self._given = given

    def has(self, name: str) -> bool:
        return name in self._given

    def text(self, name: str) -> str:
        """
        Raises:
            DumpFailure: the option was given more than once.
        """
        values = self._given.get(name, ())
        if len(values) > 1:
            raise DumpFailure(
                "joptsimple.MultipleArgumentsForOptionException",
                f"Found multiple arguments for option {name}, but you asked for only one",
            )
        return values[0] if values else OPTIONS[name].default

    def integer(self, name: str) -> int:
        """
        Raises:
            DumpFailure: the argument is not an int32, or was given more than once.
        """
        text = self.text(name)
        try:
            return parse_long(text, _LARGEST_INT)
        except DumpFailure as error:
            raise DumpFailure(
                "joptsimple.OptionArgumentConversionException",
                f"Cannot parse argument '{text}' of option {name}",
            ) from error

    @property
    def files(self) -> list[str]:
        """
        The names of the files. Empty ones at the end are dropped, as by Java's ``split``.

        Raises:
            DumpFailure: the option was given more than once.
        """
        text = self.text("files")
        names = text.split(",")
        while names and not names[-1] and text:
            names.pop()
        return names

    @property
    def print_contents(self) -> bool:
        return not _PRINTING.isdisjoint(self._given)

    @property
    def deep(self) -> bool:
        return self.print_contents or self.has("deep-iteration")


def parse(arguments: Sequence[str]) -> DumpOptions:
    """
    Raises:
        DumpFailure: an option does not exist, or lacks its argument.
    """
    given: dict[str, list[str]] = {}
    rest = list(arguments)
    while rest:
        token = rest.pop(0)
        if token == "--":
            break
        if not _is_option(token):
            continue
        option, detached = _option(token)
        arguments_given = given.setdefault(option.name, [])
        if not option.argument:
            continue
        if detached is not None:
            arguments_given.append(detached)
        elif not option.optional:
            if not rest:
                raise DumpFailure(
                    "joptsimple.OptionMissingRequiredArgumentException",
                    f"Option {option.name} requires an argument",
                )
            arguments_given.append(rest.pop(0))
        elif rest and not _is_option(rest[0]):
            arguments_given.append(rest.pop(0))
    return DumpOptions(given)


def _is_option(token: str) -> bool:
    return token.startswith("-") and token not in {"-", "--"}


def _option(token: str) -> tuple[DumpOption, str | None]:
    """
    The option that *token* names, and the argument behind its equals sign.
    """
    name, separator, argument = token.lstrip("-").partition("=")
    option = OPTIONS.get(name)
    if option is None:
        unknown = name if token.startswith("--") else token[1:2]
        raise DumpFailure(
            "joptsimple.UnrecognizedOptionException", f"{unknown} is not a recognized option"
        )
    return option, argument if separator else None
