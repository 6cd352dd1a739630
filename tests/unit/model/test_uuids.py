"""Arrays of uuids between bytes and text, against the standard library one by one."""

from __future__ import annotations

import random
import uuid

import pyarrow as pa
import pytest

from bucketcatalog.model import uuids

RANDOM = random.Random(3)
VALUES = [uuid.UUID(int=RANDOM.getrandbits(128)) for _ in range(300)] + [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1)]
STORED = pa.array([value.bytes for value in VALUES], pa.binary(16))
SHOWN = pa.array([str(value) for value in VALUES])


def test_bytes_and_text_are_each_others_inverse() -> None:
    assert uuids.to_text(STORED).to_pylist() == SHOWN.to_pylist()
    assert uuids.from_text(SHOWN).equals(STORED)


@pytest.mark.parametrize("values", [VALUES[:3] * 200, [VALUES[0]] * 65, VALUES[:64], VALUES[:33] * 2 + VALUES[:200]])
def test_repeated_values_are_shown_like_any(values: list[uuid.UUID]) -> None:
    shown = uuids.to_text(pa.array([value.bytes for value in values], pa.binary(16)))

    assert shown.to_pylist() == [str(value) for value in values]
    shown.validate(full=True)


@pytest.mark.parametrize("values", [[None], [None, VALUES[0], None], [VALUES[0], None] * 100, [None] * 100])
def test_nulls_stay_null(values: list[uuid.UUID | None]) -> None:
    stored = pa.array([value.bytes if value else None for value in values], pa.binary(16))
    text = [str(value) if value else None for value in values]

    assert uuids.to_text(stored).to_pylist() == text
    assert uuids.from_text(pa.array(text, pa.string())).to_pylist() == stored.to_pylist()


@pytest.mark.parametrize(("start", "count"), [(0, 0), (1, 1), (7, 100), (299, 3)])
def test_slices_are_read_at_their_place(start: int, count: int) -> None:
    assert uuids.to_text(STORED.slice(start, count)).to_pylist() == SHOWN.to_pylist()[start : start + count]
    assert uuids.from_text(SHOWN.slice(start, count)).to_pylist() == STORED.to_pylist()[start : start + count]


@pytest.mark.parametrize("value", VALUES[:3])
def test_a_uuid_is_the_same_text_however_it_is_given(value: uuid.UUID) -> None:
    text = str(value)
    forms = (value, text, text.upper(), value.hex, f"{{{text}}}", value.urn, value.bytes, bytearray(value.bytes))

    assert {uuids.uuid_value(form) for form in forms} == {text}


@pytest.mark.parametrize(
    "bad", [str(VALUES[0])[:-1], f"{VALUES[0]}\n", f" {VALUES[0]}", str(VALUES[0]).replace("-", "_"), "٣" * 36]
)
def test_text_that_only_looks_like_a_uuid_is_none(bad: str) -> None:
    with pytest.raises(ValueError, match="is not a uuid"):
        uuids.uuid_value(bad)


def test_dashes_and_case_do_not_matter_when_reading() -> None:
    value = VALUES[0]

    assert uuids.from_text(pa.array([value.hex, str(value).upper(), value.hex.upper()])).to_pylist() == [value.bytes] * 3


@pytest.mark.parametrize(
    "bad", ["", "x", "0" * 31, "0" * 33, "g" * 32, "é" * 16, "0" * 30 + "é", "٣" * 16, " " + "0" * 31, str(VALUES[0]) + " "]
)
def test_what_is_no_uuid_is_named_with_its_row(bad: str) -> None:
    with pytest.raises(ValueError, match="row 1"):
        uuids.from_text(pa.array([str(VALUES[0]), bad]))


@pytest.mark.parametrize("bad", [str(VALUES[0]).upper(), VALUES[0].hex, "no uuid", "x" * 36, ""])
def test_only_what_is_spelled_as_it_is_shown_is_so(bad: str) -> None:
    assert uuids.are_shown(SHOWN) and uuids.are_shown(SHOWN[:0]) and uuids.are_shown(pa.array([str(VALUES[0])] * 3))
    assert not uuids.are_shown(pa.array([str(VALUES[1]), bad])) and not uuids.are_shown(pa.array([bad] * 2))
    assert uuids.may_be_text(SHOWN) and uuids.may_be_text(SHOWN[:0])
    assert uuids.may_be_text(pa.array([str(VALUES[1]), bad])) == (len(bad) == 36)
