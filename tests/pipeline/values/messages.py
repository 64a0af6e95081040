"""
Classes of Protobuf messages without files of a compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf import descriptor_pb2, duration_pb2, timestamp_pb2
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

F = descriptor_pb2.FieldDescriptorProto

Field = dict[str, Any]


def field(name: str, number: int, kind: int | str, **options: Any) -> Field:
    """
    A field of one of the types of ``FieldDescriptorProto``, or of a message by its full name.
    """
    label = F.LABEL_REPEATED if options.pop("repeated", False) else F.LABEL_OPTIONAL
    if isinstance(kind, str):
        options.setdefault("type", F.TYPE_MESSAGE)
        return {"name": name, "number": number, "label": label, "type_name": f".{kind}", **options}
    return {"name": name, "number": number, "label": label, "type": kind, **options}


def message(name: str, fields: Sequence[Field], **options: Any) -> descriptor_pb2.DescriptorProto:
    return descriptor_pb2.DescriptorProto(name=name, field=fields, **options)


def file(
    name: str, messages: Sequence[descriptor_pb2.DescriptorProto], **options: Any
) -> descriptor_pb2.FileDescriptorProto:
    """
    A file of the syntax proto3 in the package ``shop``.
    """
    options = {"syntax": "proto3", "package": "shop", **options}
    return descriptor_pb2.FileDescriptorProto(name=name, message_type=messages, **options)


def classes(*files: descriptor_pb2.FileDescriptorProto) -> dict[str, Any]:
    """
    The classes of all messages in *files*, of which each may import those before it, by full name.
    """
    pool = DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(duration_pb2.DESCRIPTOR.serialized_pb)
    found: dict[str, Any] = {}
    for one in files:
        pool.Add(one)
        for descriptor in pool.FindFileByName(one.name).message_types_by_name.values():
            _collect(descriptor, found)
    return found


def _collect(descriptor: Descriptor, found: dict[str, Any]) -> None:
    found[descriptor.full_name] = GetMessageClass(descriptor)
    for inner in descriptor.nested_types:
        _collect(inner, found)
