"""
Principals of certificates: the subject as Java writes it, and the rules as Apache Kafka does.
"""

from __future__ import annotations

import base64
import datetime
import random
import re
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID, ObjectIdentifier

from barnabas.server.security.tls.principal_mapping import name_of, parse_rules
from barnabas.server.security.tls.subject import subject_of
from barnabas.storage.config.option_values import InvalidValue
from tests.support.java_programs import run_program

PROGRAM: Final = Path(__file__).parent / "java" / "Principals.java"
ATTRIBUTES: Final = (
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.USER_ID,
    NameOID.DOMAIN_COMPONENT,
    NameOID.EMAIL_ADDRESS,
    NameOID.SERIAL_NUMBER,
    NameOID.GIVEN_NAME,
    ObjectIdentifier("1.2.3.4.5"),
)
TEXTS: Final = (
    "alice",
    "a,b",
    'say "hi"',
    " before",
    "after ",
    " ",
    "#1",
    "a+b",
    "a\\b",
    "<x>",
    "a;b",
    "é",
    "日本",
    "a=b",
    "two  blanks",
    "x/y",
    "  both  ",
    "a#b",
    "tab\there",
)
PRINTABLE: Final = re.compile("[A-Za-z0-9 '()+,./:=?-]+")
RULES: Final = (
    "DEFAULT",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT",
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2.$3/L",
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U,DEFAULT",
    "RULE:^CN=(.*?)$/$1/",
    "RULE:^CN=([^,]*),.*$/user-$1/ , RULE:^.*$/nobody/",
    r"RULE:^CN=(.*?),O=a\/b$/$1\/x/,DEFAULT",
    "RULE:^CN=(.*)$/$1$1/L,RULE:^.*$/other/",
    "RULE:^cn=(.*)$/$1/",
    "RULE:nothing/x/",
    "RULE:^CN=(.*/x/",
    "RULE:a/b",
    "DEFAULT,DEFAULT",
    "RULE:^(.*)$/$2/",
    "RULE:^CN=alice$/\\$1/",
    "wrong",
    "",
)
SUBJECTS: Final = (
    "CN=alice,OU=ServiceUsers,O=X",
    "CN=Alice,OU=dev,O=X",
    "CN=alice",
    "CN=alice,O=a/b",
    "OU=dev,CN=bob.smith",
    "",
)


def certificate(subject: x509.Name) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    built = (
        x509.CertificateBuilder(
            issuer_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")]),
            subject_name=subject,
        )
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return built.public_bytes(serialization.Encoding.DER)


def random_subject(dice: random.Random) -> x509.Name:
    parts = []
    for _ in range(dice.randrange(1, 6)):
        chosen = dice.sample(ATTRIBUTES, dice.choice([1, 1, 1, 2]))
        parts.append(x509.RelativeDistinguishedName([attribute(kind, dice) for kind in chosen]))
    return x509.Name(parts)


def attribute(kind: ObjectIdentifier, dice: random.Random) -> x509.NameAttribute[str]:
    text = dice.choice(TEXTS)
    types = [_ASN1Type.UTF8String]
    if text.isascii():
        types.append(_ASN1Type.IA5String)
    if PRINTABLE.fullmatch(text):
        types.append(_ASN1Type.PrintableString)
    return x509.NameAttribute(kind, text, _type=dice.choice(types))


def test_subjects_are_formatted_as_in_java() -> None:
    dice = random.Random(7)
    certificates = [certificate(random_subject(dice)) for _ in range(300)]

    lines = [base64.b64encode(each).decode() + "\n" for each in certificates]
    expected = run_program(PROGRAM, lines=lines).splitlines()

    assert expected == [subject_of(each) for each in certificates]


def test_principal_mapping_rules_are_applied_as_in_kafka() -> None:
    cases = [(rules, subject) for rules in RULES for subject in SUBJECTS]

    told = run_program(PROGRAM, lines=[f"{rules}\t{subject}\n" for rules, subject in cases])

    for (rules, subject), expected in zip(cases, told.splitlines(), strict=True):
        assert expected == applied(rules, subject), (rules, subject)


def applied(rules: str, subject: str) -> str:
    """
    The name behind a sign of equality; a dash where there is none, or no such rules.
    """
    try:
        name = name_of(subject, parse_rules(rules))
    except InvalidValue:
        return "-"
    return "-" if name is None else f"={name}"
