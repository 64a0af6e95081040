"""
Options of the authorizer.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from barnabas.storage.config.option_values import InvalidValue
from barnabas.storage.config.options import Bool, Options, Text, option, section

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OF_THE_AUTHORIZER: Final = ("super.users", "allow.everyone.if.no.acl.found")
"""
The options that Kafka's broker leaves to the authorizer: it does not tell their values.
"""


@section
class AuthorizerOptions(Options):
    """
    Who may do what.
    """

    authorizer_class_name: Text = option(
        "",
        f"{STANDARD_AUTHORIZER} lets clients do what access control entries allow; empty allows "
        "everything.",
    )
    super_users: Text = option(
        "",
        "The principals that may do everything, separated by semicolons: User:admin;User:broker.",
        internal=True,
    )
    allow_everyone_if_no_acl_found: Bool = option(
        False, "Whether what no access control entry is about is allowed.", internal=True
    )

    @cached_property
    def super_user_principals(self) -> frozenset[str]:
        """
        The principals of ``super.users``, each as ``type:name``.
        """
        return frozenset(filter(None, map(str.strip, self.super_users.split(";"))))

    def check_authorizer(self) -> None:
        """
        Raises:
            InvalidValue: the authorizer is none of Kafka's own, or a super user is no principal.
        """
        if self.authorizer_class_name not in ("", STANDARD_AUTHORIZER):
            raise InvalidValue(
                "authorizer.class.name",
                self.authorizer_class_name,
                f"it is a Java class, and would not be asked; {STANDARD_AUTHORIZER} is built in",
            )
        for principal in self.super_user_principals:
            if ":" not in principal:
                raise InvalidValue(
                    "super.users",
                    self.super_users,
                    f"{principal} is no principal: write User:{principal}, and semicolons between"
                    " several",
                )
