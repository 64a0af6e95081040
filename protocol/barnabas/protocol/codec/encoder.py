"""
Writing the Python source that encodes one version of a message.

As in ``decoder`` the source is straight, and fields of fixed size that follow each other are packed
by one ``struct``; a section without tagged fields is a zero byte in its format::

    for partition in partition_data:
        records = partition.records
        add(pack_i(partition.index))
        n = len(records)
        add(UVARINTS[n + 1] if n < 127 else uvarint(n + 1))
        parts += (b''.join(out), records)
        out.clear()
        add(b'\\x00')

``out`` collects what is small and ``parts`` the result, in which records stay buffers of their own:
they are the caller's, and nothing copies them. ``left`` is how many entries of arrays may come.

The same lines, with a ``yield`` behind each entry of an array, encode a large message in steps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from struct import Struct as Format
from struct import pack
from typing import Any, Final

from barnabas.protocol.codec.primitives import (
    UVARINTS,
    Buffer,
    string_length,
    too_many_entries,
    uvarint,
)
from barnabas.protocol.codec.schema import Array, Field, Fixed, Kind, Struct, Type, fields
from barnabas.protocol.generated import SourceWriter

Encoder = Callable[[Any, int], list[Buffer]]
"""
Takes a message and how many entries it may have, gives the buffers that together are its encoding.
"""
StepEncoder = Callable[[Any, int], Generator[None, None, list[Buffer]]]
"""
The same, in steps.
"""

_PIECES_AT_ONCE: Final = 4096
"""
So many small pieces are joined in one step.
"""

_NULLS: Final = {"B": b"\0", "b": b"\xff", "h": b"\xff\xff", "i": b"\xff\xff\xff\xff"}
"""
What stands for null, by the format of the length or the marker.
"""


def compile_encoder(cls: type, version: int, *, flexible: bool) -> Encoder:
    """
    The function that encodes *version* of *cls*.
    """
    encoder: Encoder = _compile(cls, version, flexible=flexible, in_steps=False)
    return encoder


def compile_step_encoder(cls: type, version: int, *, flexible: bool) -> StepEncoder:
    """
    The generator that encodes *version* of *cls*.
    """
    encoder: StepEncoder = _compile(cls, version, flexible=flexible, in_steps=True)
    return encoder


def _compile(cls: type, version: int, *, flexible: bool, in_steps: bool) -> Any:
    writer = _EncoderWriter(version, flexible=flexible, in_steps=in_steps)
    with writer.block("def encode(message, left):"):
        writer.line("parts, out = [], []")
        writer.line("add = out.append")
        if in_steps:
            writer.line("yield")
        writer.struct(cls, "message")
        writer.flush()
        writer.line("parts.append(b''.join(out))")
        writer.line("return parts")
    steps = " in steps" if in_steps else ""
    return writer.compile("encode", f"{cls.__name__} v{version} encode{steps}")


class _EncoderWriter(SourceWriter):
    """
    Writes statements that add buffers to ``out``.

    Fields of fixed size wait in ``_run`` until something else is to be added.
    """

    def __init__(self, version: int, *, flexible: bool, in_steps: bool) -> None:
        super().__init__(
            "message parts out add data left n len",
            UVARINTS=UVARINTS,
            pack=pack,
            string_length=string_length,
            too_many_entries=too_many_entries,
            uvarint=uvarint,
        )
        self._version = version
        self._flexible = flexible
        self._in_steps = in_steps
        self._out = "out"
        self._run: list[tuple[str, str]] = []

    def flush(self) -> None:
        """
        Pack the fields of fixed size that were put off.
        """
        if not self._run:
            return
        formats = "".join(letter for letter, _ in self._run)
        values = [value for _, value in self._run if value]
        if values:
            name = "pack_" + formats.replace("?", "o").replace("16s", "u")
            self.namespace[name] = Format(">" + formats).pack
            self._add(f"{name}({', '.join(values)})")
        else:
            self._add(repr(bytes(len(formats))))
        self._run.clear()

    def struct(self, cls: type, variable: str) -> None:
        """
        Add the struct that *variable* holds.
        """
        present = [field for field in fields(cls) if field.is_in(self._version)]
        for field in present:
            if field.tag is None:
                self._write(field.type, f"{variable}.{field.name}", field)
        if self._flexible:
            self._tagged(cls, variable, [field for field in present if field.tag is not None])

    def _add(self, value: str) -> None:
        self.line(f"add({value})" if self._out == "out" else f"{self._out}.append({value})")

    def _write(self, kind: Type, value: str, field: Field) -> None:
        """
        Add *value* of type *kind*, which is that of *field* or of its elements.
        """
        if isinstance(kind, Fixed):
            self._run.append((kind.format, value))
        elif kind is Kind.UUID:
            self._run.append(("16s", f"{value}.bytes"))
        elif isinstance(kind, Kind):
            self._sized(kind, value, field)
        elif isinstance(kind, Array):
            self._array(kind, value, field)
        else:
            self._struct(kind, value, field)

    def _sized(self, kind: Kind, value: str, field: Field) -> None:
        compact = self._flexible and field.compact
        classic = "h" if kind is Kind.STRING else "i"
        with self._unless_null(value, field, "B" if compact else classic) as there:
            data = there
            if kind is Kind.STRING:
                data = "data"
                self.line(f"data = {there}.encode()")
            if not compact:
                self._run.append((classic, f"len({data})"))
                self.flush()
            elif kind is Kind.STRING:
                self._compact_length(data, "string_length(n)")
            else:
                self._compact_length(data, "uvarint(n + 1)")
            if kind is Kind.RECORDS and self._out == "out":
                self.line(f"parts += (b''.join(out), {data})")
                self.line("out.clear()")
            else:
                self._add(data)

    def _array(self, kind: Array, value: str, field: Field) -> None:
        element = kind.element
        with self._unless_null(value, field, "B" if self._flexible else "i") as items:
            if self._flexible:
                self._compact_length(items, "uvarint(n + 1)")
            else:
                self._run.append(("i", "n"))
                self.line(f"n = len({items})")
                self.flush()
            self.line("left -= n")
            with self.block("if left < 0:"):
                self.line(f"too_many_entries({field.name!r})")
            if isinstance(element, Fixed):
                self.flush()
                self._add(f"pack(f'>{{len({items})}}{element.format}', *{items})")
                return
            item = self.variable(element.cls) if isinstance(element, Struct) else self.name("item")
            with self.block(f"for {item} in {items}:"):
                self._write(element, item, field._replace(nullable=None))
                if self._in_steps:
                    self._step()

    def _step(self) -> None:
        """
        Let others come between, with few pieces left to be joined at the end.
        """
        self.flush()
        if self._out == "out":
            with self.block(f"if len(out) > {_PIECES_AT_ONCE}:"):
                self.line("parts.append(b''.join(out))")
                self.line("out.clear()")
        self.line("yield")

    def _struct(self, kind: Struct, value: str, field: Field) -> None:
        with self._unless_null(value, field, "b" if field.tag is None else "B") as variable:
            if field.is_nullable_in(self._version):
                self._run.append(("b", "1"))
            self.struct(kind.cls, variable)

    def _compact_length(self, name: str, otherwise: str) -> None:
        self.flush()
        self.line(f"n = len({name})")
        self._add(f"UVARINTS[n + 1] if n < 127 else {otherwise}")

    @contextmanager
    def _unless_null(self, value: str, field: Field, length: str) -> Iterator[str]:
        """
        What is written within is for a value that is there, in the variable that this names.
        """
        name = value
        if not value.isidentifier():
            name = self.name(field.name)
            self.line(f"{name} = {value}")
        if not field.is_nullable_in(self._version):
            yield name
            return
        with self.block(f"if {name} is None:"):
            self._add(repr(_NULLS[length]))
        with self.block("else:"):
            yield name

    def _tagged(self, cls: type, variable: str, known: Sequence[Field]) -> None:
        """
        Add the section of tagged fields: those that differ from their defaults.
        """
        if not known:
            self._run.append(("x", ""))
            return
        self.flush()
        tagged, count = self.name("tagged"), self.name("count")
        self.line(f"{tagged}, {count} = [], 0")
        for field in sorted(known, key=lambda field: field.tag or 0):
            value = self.name(field.name)
            self.line(f"{value} = {variable}.{field.name}")
            with self.block(f"if {self._differs(cls, field, value)}:"):
                outer, self._out = self._out, self.name("body")
                self.line(f"{self._out} = []")
                self._write(field.type, value, field)
                self.flush()
                body, self._out = self._out, outer
                self.line(f"{body} = b''.join({body})")
                tag = uvarint(field.tag or 0)
                self.line(f"{tagged} += ({tag!r}, uvarint(len({body})), {body})")
                self.line(f"{count} += 1")
        self._add(f"UVARINTS[{count}]")
        self.line(f"{self._out}.extend({tagged})")

    def _differs(self, cls: type, field: Field, value: str) -> str:
        """
        The condition that *value* is not the default of *field*.
        """
        default = field.default
        if default == []:
            return f"{value} or {value} is None"
        name = self.constant(f"default_{cls.__name__}_{field.name}", default)
        if default is None:
            return f"{value} is not None"
        if isinstance(field.type, Fixed | Kind) and field.type is not Kind.UUID:
            return f"{value} != {name}"
        # Most are the default itself, and to compare structs takes time.
        return f"{value} is not {name} and {value} != {name}"
