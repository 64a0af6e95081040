"""
Variables of Apache Kafka's image that name files of secrets, and the options that they stand for.

The image looks for these files in ``/etc/kafka/secrets``. Its start script reads the passwords;
here they are read as the options are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from barnabas.storage.config.option_values import ConfigError

SECRETS: Final = Path("/etc/kafka/secrets")
_FILES: Final = {
    "KAFKA_SSL_KEYSTORE_FILENAME": "ssl.keystore.location",
    "KAFKA_SSL_TRUSTSTORE_FILENAME": "ssl.truststore.location",
}
_PASSWORDS: Final = {
    "KAFKA_SSL_KEYSTORE_CREDENTIALS": "ssl.keystore.password",
    "KAFKA_SSL_KEY_CREDENTIALS": "ssl.key.password",
    "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "ssl.truststore.password",
}
_JAAS: Final = re.compile(r"-Djava\.security\.auth\.login\.config=(?:\"([^\"]*)\"|(\S+))")


def option_of(variable: str, text: str, secrets: Path = SECRETS) -> tuple[str, str] | None:
    """
    The option that a variable stands for, and its value; None if it is no such variable.

    Args:
        secrets: the directory of the files.

    Raises:
        ConfigError: the file of a password cannot be read.
    """
    if variable in _FILES:
        return _FILES[variable], str(secrets / text)
    if variable in _PASSWORDS:
        path = secrets / text
        try:
            return _PASSWORDS[variable], path.read_text().rstrip("\r\n")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(f"{variable}: {path} cannot be read: {reason}") from None
    if variable == "KAFKA_OPTS" and (match := _JAAS.search(text)):
        return "barnabas.jaas.file", match[1] or match[2]
    return None
