"""Cuts as text and as values."""

from __future__ import annotations

import pickle
import uuid

import pytest

from bucketcatalog.clock import uuid7, uuid7_time
from bucketcatalog.errors import InvalidVersion
from bucketcatalog.model.cuts import Cut, Head

ONE, TWO, THREE = (Head(n, uuid.UUID(int=n).bytes) for n in (1, 2, 3))
CUT = Cut.of([("b", TWO), ("a-1.x_y", ONE), ("b", ONE)])


def test_text_reads_as_the_cut_it_was_made_of() -> None:
    text = f"a-1.x_y@1:{ONE.uuid.hex()},b@1:{ONE.uuid.hex()},b@2:{TWO.uuid.hex()}"

    assert str(CUT) == text
    assert Cut.parse(text) == CUT and hash(Cut.parse(text)) == hash(CUT)
    assert pickle.loads(pickle.dumps(CUT)) == CUT


def test_empty_cut_is_a_colon() -> None:
    assert str(Cut()) == ":" and Cut.parse(":") == Cut()


def test_order_and_repetition_of_heads_do_not_matter() -> None:
    parts = str(CUT).split(",")

    assert Cut.parse(",".join([*reversed(parts), parts[0]])) == CUT


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "a",
        "a@1",
        f"a@:{ONE.uuid.hex()}",
        f"a@-1:{ONE.uuid.hex()}",
        f"a@1:{ONE.uuid.hex()[:-1]}",
        f"a@1:{ONE.uuid.hex().upper()[:-1]}A",
        f"a@1:{ONE.uuid.hex()},",
        f",a@1:{ONE.uuid.hex()}",
        f"a@1:{ONE.uuid.hex()}\n",
        f"../a@1:{ONE.uuid.hex()}",
        f"a/b@1:{ONE.uuid.hex()}",
        f"a@٣:{ONE.uuid.hex()}",
        f"a@{'9' * 21}:{ONE.uuid.hex()}",
        "\ud800",
        "x" * 100_000,
    ],
)
def test_other_text_is_no_version(text: str) -> None:
    with pytest.raises(InvalidVersion) as error:
        Cut.parse(text)
    assert len(str(error.value)) < 400


def test_newest_revision_and_commit_time() -> None:
    heads = [Head(n, uuid7(1_700_000_000_000_000 + n).bytes) for n in (4, 9)]
    cut = Cut.of([("a", heads[0]), ("b", heads[1])])

    assert (cut.newest_revision("a"), cut.newest_revision("b"), cut.newest_revision("c")) == (4, 9, -1)
    assert cut.newest_commit_time == 1_700_000_000_000_009
    assert Cut().newest_commit_time == 0


def test_changed_since_names_the_writers_that_moved() -> None:
    later = Cut.of([("a-1.x_y", ONE), ("b", THREE), ("c", ONE)])

    assert later.changed_since(CUT) == Cut.of([("b", THREE), ("c", ONE)])
    assert CUT.changed_since(CUT) == Cut()


@pytest.mark.parametrize("time", [0, 1, 999, 1_000, 1_700_000_000_123_456, (1 << 48) * 1_000 - 1])
def test_version_7_uuids_hold_their_time_to_the_microsecond(time: int) -> None:
    made = uuid7(time)

    assert uuid7_time(made.bytes) == time and made.version == 7 and made.variant == uuid.RFC_4122


@pytest.mark.parametrize("time", [-1, (1 << 48) * 1_000])
def test_times_that_no_uuid_holds_are_refused(time: int) -> None:
    with pytest.raises(OverflowError):
        uuid7(time)
