"""
From the subject of a client's certificate to a principal: ``ssl.principal.mapping.rules`` (Kafka
``SslPrincipalMapper``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from barnabas.protocol.structs import struct
from barnabas.storage.config.option_values import InvalidValue

_OPTION: Final = "ssl.principal.mapping.rules"
_RULE: Final = re.compile(
    r"(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/"
    r"(?P<case>[LU]?)"
)
_GROUP: Final = re.compile(r"\$(\d)|\\(.)", re.DOTALL)


@struct
class PrincipalRule:
    """
    One rule. ``pattern`` is None for DEFAULT, which takes the subject as it is.
    """

    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""

    def apply(self, subject: str) -> str | None:
        """
        The name for a subject; None if the rule is not for it.
        """
        if self.pattern is None:
            return subject
        match = self.pattern.fullmatch(subject)
        if match is None:
            return None
        groups = (match[0], *match.groups(""))
        name = _GROUP.sub(
            lambda found: _referenced(found, groups) if found[1] else found[2], self.replacement
        )
        if self.case == "L":
            return name.lower()
        return name.upper() if self.case == "U" else name


def _referenced(reference: re.Match[str], groups: Sequence[str]) -> str:
    """
    The group of a pattern that a *reference* means; the reference itself if there is none.
    """
    number = int(reference[1])
    return groups[number] if number < len(groups) else reference[0]


def parse_rules(text: str) -> Sequence[PrincipalRule]:
    """
    The rules in *text*.

    Raises:
        InvalidValue: it is not made of rules with commas between, or a pattern is none.
    """
    rules, at = [], 0
    text = text.strip()
    while at <= len(text):
        match = _RULE.match(text, at)
        if match is None:
            raise InvalidValue(
                _OPTION, text[at:] or text, "a rule is DEFAULT or RULE:pattern/replacement/[LU]"
            )
        rules.append(_rule(match))
        at = match.end()
        separator = re.compile(r"\s*,\s*").match(text, at)
        if separator is None:
            if text[at:].strip():
                raise InvalidValue(_OPTION, text[at:], "rules have commas between them")
            break
        at = separator.end()
    return rules


def name_of(subject: str, rules: Sequence[PrincipalRule]) -> str | None:
    """
    The name that the first rule for *subject* gives; None if no rule is for it.
    """
    for rule in rules:
        name = rule.apply(subject)
        if name is not None:
            return name
    return None


def _rule(match: re.Match[str]) -> PrincipalRule:
    if match["default"]:
        return PrincipalRule(None)
    pattern = match["pattern"].replace("\\/", "/")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InvalidValue(_OPTION, pattern, f"it is no regular expression: {error}") from None
    replacement = match["replacement"].replace("\\/", "/")
    return PrincipalRule(compiled, replacement, match["case"])
