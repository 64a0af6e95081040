"""
Which quota is for a client, and with whom the client shares it.

The first that there is decides (Kafka ``ClientQuotaManager.DefaultQuotaCallback``):

=======================================  =========================================================
quota of                                 counted together
=======================================  =========================================================
the user and the client id               what this user does with this client id
the user and the default client id       the same
the user                                 what this user does with any client id
the default user and the client id       what this user does with this client id
the default user, default client id      the same
the default user                         what this user does with any client id
the client id                            what any user does with this client id
the default client id                    the same
=======================================  =========================================================

Two details are Kafka's. A client without a client id (or with an empty one) has no quota of client
ids alone, and of quotas with a client id one that belongs to its user. And as long as all quotas
are of one kind (users, client ids, or both), all clients are counted by that kind.
"""

from __future__ import annotations

from typing import Final, TypeAlias

Entity: TypeAlias = "tuple[str | None, str | None]"
"""
The user and the client id of a quota, each a name, ``DEFAULT``, or None if it is not part of it.
"""
Share: TypeAlias = tuple[str, str]
"""
The user and the client id whose requests are counted together; an empty one stands for any.
"""

DEFAULT: Final = ""
"""
In the place of a name: the users or clients that have no quota by name. No user and no client of a
quota is empty.
"""

_NONE: Final = 0
_CLIENT_IDS: Final = 1
_USERS: Final = 2
_PAIRS: Final = 4


class QuotaLimits:
    """
    The quotas of one kind, by entity.
    """

    __slots__ = ("_by_entity", "_kinds")

    def __init__(self) -> None:
        self._by_entity: dict[Entity, float] = {}
        self._kinds = _NONE

    def __bool__(self) -> bool:
        """
        Whether there are any.
        """
        return bool(self._by_entity)

    def change(self, entity: Entity, value: float | None) -> None:
        """
        Set the quota of *entity*, or remove it.
        """
        if value is None:
            self._by_entity.pop(entity, None)
        else:
            self._by_entity[entity] = value
        self._kinds = _NONE
        for user, client_id in self._by_entity:
            self._kinds |= _USERS if client_id is None else _CLIENT_IDS if user is None else _PAIRS

    def share_of(self, user: str, client_id: str) -> Share:
        """
        With whom a client is counted.
        """
        kinds = self._kinds
        if kinds == _PAIRS:
            return user, client_id
        if kinds == _USERS:
            return user, DEFAULT
        if kinds == _CLIENT_IDS:
            return DEFAULT, client_id
        for each in (user, DEFAULT):
            if (each, client_id) in self._by_entity or (each, DEFAULT) in self._by_entity:
                return user, client_id
            if (each, None) in self._by_entity:
                return user, DEFAULT
        return DEFAULT, client_id

    def limit_of(self, share: Share) -> float | None:
        """
        What those who are counted together may do; None if there is no limit.
        """
        user, client_id = share
        there = self._by_entity
        candidates: tuple[Entity, ...]
        if user and client_id:
            candidates = (
                (user, client_id),
                (user, DEFAULT),
                (DEFAULT, client_id),
                (DEFAULT, DEFAULT),
            )
        elif user:
            candidates = (user, None), (DEFAULT, None)
        elif client_id:
            candidates = (None, client_id), (None, DEFAULT)
        else:
            return None
        for entity in candidates:
            if entity in there:
                return there[entity]
        return None
