"""Definitions of tables whose few bytes come to very much: what they cost grows with their bytes, and what is too much is refused first."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from bucketcatalog import CorruptionError, IncompatibleTable, clock, limits
from bucketcatalog.format.definitions import parse_definition
from bucketcatalog.format.evolution import merge
from bucketcatalog.format.sealing import seal
from bucketcatalog.format.transactions import decode_transaction
from bucketcatalog.v1 import log_pb2, options_pb2

from ...kit.world import START

INT64, MESSAGE, ENUM = 3, 11, 14


def definition(levels: int, *, name: str = "lab.t", more: int = 0, first: int = 3) -> log_pb2.TableDefinition:
    """A table of messages of which each has the next one twice, and of so many further columns."""
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    row = file.message_type.add(name="Row")
    options: Any = row.options
    option = options.Extensions[options_pb2.table]
    option.name = name
    option.key.append("k")
    row.field.add(name="k", number=1, type=INT64, label=1)
    row.field.add(name="m", number=2, type=MESSAGE, label=1, type_name=".t.M0")
    for number in range(more):
        row.field.add(name=f"x{number}", number=first + number, type=INT64, label=1)
    for level in range(levels):
        message = file.message_type.add(name=f"M{level}")
        for number in (1, 2):
            message.field.add(name=f"f{number}", number=number, type=MESSAGE, label=1, type_name=f".t.M{level + 1}")
    file.message_type.add(name=f"M{levels}").field.add(name="x", number=1, type=INT64, label=1)
    found = log_pb2.TableDefinition(name=name, message="t.Row")
    found.files.file.append(file)
    return found


def within(message: Any) -> bytes:
    """A transaction that defines this table."""
    of = log_pb2.Transaction(format_version=1, writer="w", database="d", uuid=clock.uuid7(START).bytes, commit_time=START)
    of.tables.append(message)
    return seal(of.SerializeToString(deterministic=True))


@pytest.mark.parametrize("levels", [20, 30, 60, 900])
def test_messages_that_double_at_each_level_are_refused_at_once(levels: int) -> None:
    began = time.monotonic()
    with pytest.raises(CorruptionError, match=r"file is not a transaction: Table 'lab\.t' cannot be declared so"):
        decode_transaction(within(definition(levels)), "file")
    assert time.monotonic() - began < 1


def test_what_is_not_too_much_costs_by_its_bytes() -> None:
    """Two hundred tables of 12,000 columns each, which are 26 columns of descriptors."""
    message = log_pb2.Transaction.FromString(within(definition(11))[:-35])
    del message.tables[:]
    message.tables.extend(definition(11, name=f"lab.t{n}") for n in range(200))
    began = time.monotonic()
    found = decode_transaction(seal(message.SerializeToString(deterministic=True)), "file")
    assert time.monotonic() - began < 3
    assert len(found.tables) == 200


def test_names_of_an_enumeration_count_wherever_it_is_used() -> None:
    forged = definition(0)
    file = forged.files.file[0]
    enum = file.enum_type.add(name="E")
    for number in range(1_000):
        enum.value.add(name=f"E{number}", number=number)
    for number in range(limits.TABLE_SYMBOLS // 1_000):
        file.message_type[0].field.add(name=f"e{number}", number=10 + number, type=ENUM, label=1, type_name=".t.E")
    assert len(parse_definition(forged.SerializeToString()).columns) == 67
    file.message_type[0].field.add(name="last", number=9, type=ENUM, label=1, type_name=".t.E")
    with pytest.raises(
        IncompatibleTable, match=f"enumerations with 66000 names, and nobody reads more than {limits.TABLE_SYMBOLS}"
    ):
        parse_definition(forged.SerializeToString())


def test_definitions_that_come_to_much_together_are_refused_as_one() -> None:
    one, other, apart = (
        parse_definition(definition(11, more=more, first=first).SerializeToString())
        for more, first in ((4_000, 3), (8_000, 3), (8_000, 9_000))
    )
    assert len(merge(one, other).columns) == 8_002
    with pytest.raises(IncompatibleTable, match="columns with what lies in them, and nobody reads more"):
        merge(other, apart)


def field(**said: Any) -> Callable[[Any], object]:
    return lambda file: file.message_type[0].field.add(name="x", number=9, label=1, **said)


WRONG: dict[str, Callable[[Any], object]] = {
    "a group": field(type=10),
    "an enumeration that is not there": field(type=ENUM, type_name=".t.Nowhere"),
    "a message that is an enumeration": lambda file: (file.enum_type.add(name="E"), field(type=MESSAGE, type_name=".t.E")(file)),
    "a message within itself": field(type=MESSAGE, type_name=".t.Row"),
    "a message twice": lambda file: file.message_type.append(file.message_type[0]),
    "a field twice": lambda file: file.message_type[0].field.append(file.message_type[0].field[0]),
    "a file that it needs": lambda file: file.dependency.append("nowhere.proto"),
    "a name that is none": lambda file: setattr(file.message_type[0].field[0], "name", "1 x"),
    "a number that is none": lambda file: setattr(file.message_type[0].field[1], "number", 0),
    "a number below 0": lambda file: setattr(file.message_type[0].field[1], "number", -5),
    "an enumeration without names": lambda file: (file.enum_type.add(name="E"), field(type=ENUM, type_name=".t.E")(file)),
    "no message": lambda file: file.ClearField("message_type"),
    "another syntax": lambda file: setattr(file, "syntax", "proto2"),
    "a key that is not there": lambda file: file.message_type[0].options.Extensions[options_pb2.table].key.append("nowhere"),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_descriptors_that_are_none_are_damage_of_the_file(change: Callable[[Any], object]) -> None:
    forged = definition(1)
    change(forged.files.file[0])
    with pytest.raises(CorruptionError, match=r"^\[CORRUPT\] file is not a transaction: "):
        decode_transaction(within(forged), "file")
