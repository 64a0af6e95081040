"""
Writing the Python source that decodes one version of a message.

The source is straight: no table, no call per field, nested structs in their place. Fields of fixed
size that follow each other are read by one ``struct``, with the length of what comes next::

    partition.index, n = unpack_iB(data, p)
    p += 5
    if n > 127:
        n, p = read_uvarint(data, p - 1)
    if n == 0:
        partition.records = None
    else:
        e = p + n - 1
        if not p <= e <= end:
            bad_length('PartitionProduceData.records', n - 1, end - p)
        partition.records = data[p:e]
        p = e

``p`` is the position, ``n`` a length or a count, ``e`` where a field ends, ``end`` where the data
does, ``left`` how many entries of arrays may come. To read a number beyond the end is an error of
``struct`` or of indexing, which ``codec`` turns into a ``DecodeError``; only slices, which would
silently be short, are compared with it.

The same lines, with a ``yield`` behind each entry of an array, decode a large message in steps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from struct import Struct as Format
from struct import calcsize, unpack_from
from typing import Any, Final

from barnabas.protocol.codec.primitives import (
    MAX_STRING_BYTES,
    MAX_TAGGED_FIELDS,
    bad_count,
    bad_length,
    bad_tag,
    bad_tag_count,
    read_uvarint,
    skip_tagged_fields,
    too_many_entries,
)
from barnabas.protocol.codec.schema import (
    Array,
    Field,
    Fixed,
    Kind,
    Struct,
    Type,
    fields,
)
from barnabas.protocol.codec.uuids import uuid_from
from barnabas.protocol.generated import SourceWriter
from barnabas.protocol.structs import MISSING, is_frozen

Decoder = Callable[[memoryview, int, int], tuple[Any, int]]
"""
Takes data, a position and how many entries there may be; gives a message and the position after it.
"""
StepDecoder = Callable[[memoryview, int, int], Generator[None, None, tuple[Any, int]]]
"""
The same, in steps.
"""

_VALUES: Final = {
    # What is no UTF-8 becomes U+FFFD, as in Java.
    Kind.STRING: "str(data[p:e], 'utf-8', 'replace')",
    Kind.BYTES: "bytes(data[p:e])",
    Kind.RECORDS: "data[p:e]",
}


def compile_decoder(cls: type, version: int, *, flexible: bool) -> Decoder:
    """
    The function that decodes *version* of *cls*.

    Raises:
        TypeError: the declaration of the message makes no sense in this version.
    """
    decoder: Decoder = _compile(cls, version, flexible=flexible, in_steps=False)
    return decoder


def compile_step_decoder(cls: type, version: int, *, flexible: bool) -> StepDecoder:
    """
    The generator that decodes *version* of *cls*.
    """
    decoder: StepDecoder = _compile(cls, version, flexible=flexible, in_steps=True)
    return decoder


def _compile(cls: type, version: int, *, flexible: bool, in_steps: bool) -> Any:
    writer = _DecoderWriter(version, flexible=flexible, in_steps=in_steps)
    with writer.block("def decode(data, p, left):"):
        writer.line("end = len(data)")
        if in_steps:
            writer.line("yield")
        message = writer.struct(cls)
        writer.flush()
        writer.line(f"return {message}, p")
    steps = " in steps" if in_steps else ""
    return writer.compile("decode", f"{cls.__name__} v{version} decode{steps}")


class _DecoderWriter(SourceWriter):
    """
    Writes statements that advance ``p`` over ``data``.

    Fields of fixed size wait in ``_run`` until something needs their values or the position after
    them; then they are read together.
    """

    def __init__(self, version: int, *, flexible: bool, in_steps: bool) -> None:
        super().__init__(
            "data p n e end left bytes len list range str",
            bad_count=bad_count,
            bad_length=bad_length,
            bad_tag=bad_tag,
            bad_tag_count=bad_tag_count,
            new=object.__new__,
            read_uvarint=read_uvarint,
            skip_tagged_fields=skip_tagged_fields,
            too_many_entries=too_many_entries,
            unpack_from=unpack_from,
            uuid_from=uuid_from,
        )
        self._version = version
        self._flexible = flexible
        self._in_steps = in_steps
        self._run: list[tuple[str, str]] = []
        self._after_run: list[str] = []

    def flush(self) -> None:
        """
        Read the fields of fixed size that were put off.
        """
        if not self._run:
            return
        formats, targets = zip(*self._run, strict=True)
        layout = Format(">" + "".join(formats))
        if formats == ("B",):
            self.line(f"{targets[0]} = data[p]")
        else:
            name = "unpack_" + "".join(formats).replace("?", "o").replace("16s", "u")
            self.namespace[name] = layout.unpack_from
            comma = "," if len(targets) == 1 else ""
            self.line(f"{', '.join(targets)}{comma} = {name}(data, p)")
        self.line(f"p += {layout.size}")
        for line in self._after_run:
            self.line(line)
        self._run.clear()
        self._after_run.clear()

    def struct(self, cls: type) -> str:
        """
        Read a struct; returns the name of the variable that holds it.
        """
        present = [field for field in fields(cls) if field.is_in(self._version)]
        variable = self.variable(cls)
        class_name = self.constant(cls.__name__, cls)
        if is_frozen(cls):
            targets = {field.name: self.name(field.name) for field in present}
        else:
            self.line(f"{variable} = new({class_name})")
            targets = {field.name: f"{variable}.{field.name}" for field in fields(cls)}
        self._set_defaults(cls, targets)
        for field in present:
            if field.tag is None:
                self._read(field.type, targets[field.name], f"{cls.__name__}.{field.name}", field)
        if self._flexible:
            self._tagged(cls, [field for field in present if field.tag is not None], targets)
        if is_frozen(cls):
            self.flush()
            values = ", ".join(f"{name}={target}" for name, target in targets.items())
            self.line(f"{variable} = {class_name}({values})")
        return variable

    def _set_defaults(self, cls: type, targets: dict[str, str]) -> None:
        """
        Give the fields that this version lacks, or may lack, their defaults.

        The constructor of a frozen struct does that by itself for those that are not in *targets*.
        """
        for field in fields(cls):
            present = field.is_in(self._version)
            if present and field.tag is None:
                continue
            if field.default is MISSING:
                raise TypeError(
                    f"{cls.__name__}.{field.name} needs a default: version {self._version} lacks it"
                )
            if field.name in targets:
                wish = f"default_{cls.__name__}_{field.name}"
                default = "[]" if field.default == [] else self.constant(wish, field.default)
                self.line(f"{targets[field.name]} = {default}")

    def _read(self, kind: Type, target: str, path: str, field: Field) -> None:
        """
        Read a value of type *kind*, which is that of *field* or of its elements, into *target*.
        """
        if isinstance(kind, Fixed):
            self._run.append((kind.format, target))
        elif kind is Kind.UUID:
            raw = self.name("raw")
            self._run.append(("16s", raw))
            self._after_run.append(f"{target} = uuid_from({raw})")
        elif isinstance(kind, Kind):
            self._sized(kind, target, path, field)
        elif isinstance(kind, Array):
            self._array(kind, target, path, field)
        else:
            self._struct_field(kind, target, field)

    def _sized(self, kind: Kind, target: str, path: str, field: Field) -> None:
        compact = self._flexible and field.compact
        self._length("h" if kind is Kind.STRING else "i", compact=compact, path=path)
        with self._unless_null(target, field, compact=compact):
            length = "n - 1" if compact else "n"
            self.line(f"e = p + {length}")
            with self.block("if not p <= e <= end:"):
                self.line(f"bad_length({path!r}, {length}, end - p)")
            self.line(f"{target} = {_VALUES[kind]}")
            self.line("p = e")

    def _array(self, kind: Array, target: str, path: str, field: Field) -> None:
        self._length("i", compact=self._flexible)
        element = kind.element
        with self._unless_null(target, field, compact=self._flexible):
            if self._flexible:
                self.line("n -= 1")
            # Nothing is allocated for elements that cannot be there.
            size = max(1, self._least_size(element))
            with self.block(f"if not 0 <= n * {size} <= end - p:"):
                self.line(f"bad_count({path!r}, n, end - p)")
            self.line("left -= n")
            with self.block("if left < 0:"):
                self.line(f"too_many_entries({path!r})")
            if isinstance(element, Fixed):
                self.line(f"{target} = list(unpack_from(f'>{{n}}{element.format}', data, p))")
                self.line(f"p += n * {size}")
                return
            items = self.name(field.name)
            self.line(f"{target} = {items} = []")
            with self.block("for _ in range(n):"):
                if isinstance(element, Struct):
                    item = self.struct(element.cls)
                else:
                    item = self.name("item")
                    self._read(element, item, path, field._replace(nullable=None))
                self.flush()
                self.line(f"{items}.append({item})")
                if self._in_steps:
                    self.line("yield")

    def _struct_field(self, kind: Struct, target: str, field: Field) -> None:
        if not field.is_nullable_in(self._version):
            self.line(f"{target} = {self.struct(kind.cls)}")
            return
        if field.tag is None:
            self._run.append(("b", "n"))
        else:
            # Here Kafka's generator writes the marker as an unsigned varint.
            self.line("n, p = read_uvarint(data, p)")
            self.line("n -= 1")
        with self.block("if n < 0:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            item = self.struct(kind.cls)
            self.flush()
            self.line(f"{target} = {item}")

    def _length(self, classic: str, *, compact: bool, path: str = "") -> None:
        """
        Read a length or a count into ``n``; a compact one is still one too high.

        That of a string, at *path*, has a limit, which the classic form has by itself.
        """
        self._run.append(("B" if compact else classic, "n"))
        self.flush()
        if compact:
            with self.block("if n > 127:"):
                self.line("n, p = read_uvarint(data, p - 1)")
                if classic == "h":
                    with self.block(f"if n > {MAX_STRING_BYTES + 1}:"):
                        self.line(f"bad_length({path!r}, n - 1, n)")

    @contextmanager
    def _unless_null(self, target: str, field: Field, *, compact: bool) -> Iterator[None]:
        """
        What is written within is for a value that is there.
        """
        if not field.is_nullable_in(self._version):
            yield
            return
        with self.block("if n == 0:" if compact else "if n < 0:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            yield

    def _tagged(self, cls: type, known: Sequence[Field], targets: dict[str, str]) -> None:
        """
        Read the section of tagged fields; those that nobody knows are skipped.
        """
        self._run.append(("B", "n"))
        with self.block("if n:"):
            if not known:
                self.line("p = skip_tagged_fields(data, p - 1)")
                return
            tag, stop = self.name("tag"), self.name("stop")
            self.line("n, p = read_uvarint(data, p - 1)")
            with self.block(f"if n > {MAX_TAGGED_FIELDS}:"):
                self.line(f"bad_tag_count({cls.__name__!r}, n)")
            with self.block("for _ in range(n):"):
                self.line(f"{tag}, p = read_uvarint(data, p)")
                self.line("n, p = read_uvarint(data, p)")
                self.line(f"{stop} = p + n")
                for number, field in enumerate(known):
                    with self.block(f"{'elif' if number else 'if'} {tag} == {field.tag}:"):
                        path = f"{cls.__name__}.{field.name}"
                        self._read(field.type, targets[field.name], path, field)
                with self.block("else:"):
                    self.line(f"p = {stop}")
                with self.block(f"if p != {stop} or p > end:"):
                    self.line(f"bad_tag({cls.__name__!r}, {tag}, {stop} - p)")

    def _least_size(self, kind: Type) -> int:
        """
        The size in bytes that a value of *kind* has at least.
        """
        if isinstance(kind, Fixed):
            return calcsize(">" + kind.format)
        if kind is Kind.UUID:
            return 16
        if isinstance(kind, Struct):
            own = (f for f in fields(kind.cls) if f.is_in(self._version) and f.tag is None)
            return self._flexible + sum(
                1 if field.is_nullable_in(self._version) else self._least_size(field.type)
                for field in own
            )
        if self._flexible:
            return 1
        return 2 if kind is Kind.STRING else 4
