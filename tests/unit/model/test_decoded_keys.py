"""Encoded keys are taken apart into what they were made of."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog.format.definitions import core_tables, table_of
from bucketcatalog.model.keys import decode_key, encode_key

from ...kit.world import EPOCH, messages, proto

KINDS = {
    "a": ("string", "", st.text(st.characters(codec="utf-8"), max_size=5)),
    "b": ("bytes", "", st.binary(max_size=5)),
    "c": ("bytes", "LOGICAL_TYPE_UUID", st.uuids().map(lambda value: value.bytes)),
    "d": ("int64", "LOGICAL_TYPE_TIMESTAMP_MICROS", st.integers(-(10**15), 10**15)),
    "e": ("int32", "", st.integers(-(2**31), 2**31 - 1)),
    "f": ("uint32", "", st.integers(0, 2**32 - 1)),
    "g": ("int64", "", st.integers(-(2**63), 2**63 - 1)),
    "h": ("uint64", "", st.integers(0, 2**64 - 1)),
}


def declared(order: str) -> Any:
    fields = [
        f"{kind} {name} = {number}{f' [(column) = {{type: {logical}}}]' if logical else ''};"
        for number, (name, (kind, logical, _)) in enumerate(KINDS.items(), 1)
    ]
    key = " ".join(f'key: "{name}"' for name in order)
    body = f'message Row {{ option (table) = {{ name: "my.rows" {key} }}; {" ".join(fields)} }}'
    return table_of(messages(proto(body))["Row"])


def shown(name: str, value: Any) -> Any:
    if name == "c":
        return str(uuid.UUID(bytes=value))
    return EPOCH + datetime.timedelta(microseconds=value) if name == "d" else value


@pytest.mark.parametrize("order", ["abcdefgh", "hgfedcba", "bca"])
def test_a_key_is_taken_apart_into_what_it_was_made_of(order: str) -> None:
    table = declared(order)

    @given(st.fixed_dictionaries({name: KINDS[name][2] for name in order}))
    def check(row: dict[str, Any]) -> None:
        assert decode_key(table, encode_key(table, row)) == {name: shown(name, value) for name, value in row.items()}

    check()


@given(st.lists(st.sampled_from(["\0", "\x01", "\xff", "a"])).map("".join))
def test_nuls_inside_of_names_stay(name: str) -> None:
    for table in (core_tables()["buckets"], core_tables()["object_versions"]):
        row = {column.name: name if column.type.value == "string" else bytes(16) for column in table.key_columns}
        assert decode_key(table, encode_key(table, row))["name"] == name
