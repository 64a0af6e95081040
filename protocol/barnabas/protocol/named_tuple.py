"""
``typing.NamedTuple`` at a tenth of its price at import.

The original compiles a constructor and every annotation of a class, which a start pays for sixty of
them. Here classes share a constructor, as structs do (``structs.py``), until one of them has made
more than a few objects. Type checkers take it for the original, and it behaves like that.

Classes of modules that mypyc compiles are made by the original whatever they import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414  # For whom it is exported.
else:
    from collections import Counter, _tuplegetter

    from barnabas.protocol.generated import FEW

    _MADE = Counter()
    """
    How many objects of a class the shared constructor has made.
    """

    class _NamedTupleType(type):
        """
        Makes the fields of a class out of its annotations.
        """

        def __new__(cls, name, bases, namespace):
            fields = tuple(namespace.get("__annotations__", ()))
            if fields:
                defaults = {field: namespace[field] for field in fields if field in namespace}
                if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                    raise TypeError(f"{name}: a field without a default follows one with a default")
                namespace |= {field: _tuplegetter(at, None) for at, field in enumerate(fields)}
                namespace |= {
                    "__match_args__": fields,
                    "__slots__": (),
                    "_field_defaults": defaults,
                    "_fields": fields,
                }
            return super().__new__(cls, name, bases, namespace)

    class NamedTuple(tuple, metaclass=_NamedTupleType):
        """
        A tuple whose values have names.
        """

        __slots__ = ()

        def __new__(cls, *values, **named):
            fields = cls._fields
            _MADE[cls] += 1
            if _MADE[cls] <= FEW and len(values) <= len(fields):
                given = dict(zip(fields, values, strict=False))
                all_given = cls._field_defaults | given | named
                if not given.keys() & named.keys() and all_given.keys() == set(fields):
                    return tuple.__new__(cls, map(all_given.__getitem__, fields))
            cls.__new__ = _compile_new(cls)
            return cls.__new__(cls, *values, **named)

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changes):
            if unknown := changes.keys() - set(self._fields):
                raise ValueError(f"Got unexpected field names: {sorted(unknown)}")
            return self._make((self._asdict() | changes).values())

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            shown = (f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({', '.join(shown)})"

        def __getnewargs__(self):
            return tuple(self)

    def _compile_new(cls):
        """
        The constructor of a class of its own: many times as quick, and it refuses what is wrong.
        """
        names = "".join(f"{name}, " for name in cls._fields)
        new = eval(f"lambda _cls, {names}: _new(_cls, ({names}))", {"_new": tuple.__new__})
        new.__name__, new.__defaults__ = "__new__", tuple(cls._field_defaults.values())
        return staticmethod(new)
