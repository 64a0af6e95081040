from __future__ import annotations

import pytest

from barnabas.server.security.jaas import LoginModule, parse_jaas, parse_jaas_file


def test_login_module_has_options() -> None:
    text = 'a.B required username="me" user_x=\'it is "x"\' user_y=plain user_z="a \\"b\\" \\\\";'

    assert [
        LoginModule(
            "a.B",
            "required",
            {"username": "me", "user_x": 'it is "x"', "user_y": "plain", "user_z": 'a "b" \\'},
        )
    ] == parse_jaas(text)


def test_jaas_text_may_have_several_modules_and_comments() -> None:
    text = "// first\na.B Required; /* and\n another */ a.C optional k = v ;"

    assert [("a.B", "required"), ("a.C", "optional")] == [
        (module.name, module.flag) for module in parse_jaas(text)
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no login module"),
        ("a.B", "has to be one of required"),
        ("a.B always;", "has to be one of required"),
        ("a.B required", "ends with ;"),
        ("a.B required user", "no = behind user"),
        ("a.B required user_a=", "no value behind user_a="),
        ("a.B required user_a=;", "no value behind user_a="),
        ('a.B required user_a="secret', "quotation mark"),
    ],
)
def test_malformed_jaas_text_is_refused_without_revealing_a_secret(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        parse_jaas(text)

    assert "secret" not in str(refused.value)


def test_jaas_file_has_sections() -> None:
    text = """
        KafkaServer { // of all listeners
            a.B required user_x="1";
            a.C optional;
        };
        sasl_ssl.KafkaServer { };
    """

    sections = parse_jaas_file(text)

    assert ["KafkaServer", "sasl_ssl.KafkaServer"] == list(sections)
    assert ["a.B", "a.C"] == [module.name for module in sections["KafkaServer"]]
    assert {"user_x": "1"} == sections["KafkaServer"][0].options


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("KafkaServer a.B required;", "there is no { behind KafkaServer"),
        ("KafkaServer { a.B required;", "is not closed"),
        ("KafkaServer { a.B required; }", "does not end with };"),
        ('KafkaServer { a.B required user_a="secret" };', "there is no ="),
    ],
)
def test_malformed_jaas_file_is_refused_without_revealing_a_secret(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        parse_jaas_file(text)

    assert "secret" not in str(refused.value)
