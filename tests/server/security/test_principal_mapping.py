"""
Rules that map the subject of a certificate to a principal. ``tests/interop/test_principals.py``
compares them with Kafka's.
"""

from __future__ import annotations

import pytest

from barnabas.server.security.tls.principal_mapping import name_of, parse_rules

SUBJECT = "CN=Alice,O=Acme"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", SUBJECT),
        ("RULE:^CN=(.*?),.*$/$1/", "Alice"),
        ("RULE:^CN=(.*?),.*$/$1/L", "alice"),
        ("RULE:^CN=(.*?),.*$/$1/U", "ALICE"),
        ("RULE:^OU=(.*?)$/$1/, RULE:^CN=(.*?),O=(.*?)$/$2-$1/L", "acme-alice"),
        ("RULE:^OU=(.*?)$/$1/", None),
    ],
)
def test_the_first_rule_that_matches_names_the_principal(rules: str, name: str | None) -> None:
    assert name == name_of(SUBJECT, parse_rules(rules))
