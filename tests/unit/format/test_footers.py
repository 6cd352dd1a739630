"""The footer of a segment: which bytes are taken for one, and what is said where they are none."""

from __future__ import annotations

import pickle

import pytest

from bucketcatalog import CorruptionError, limits
from bucketcatalog.format.definitions import core_tables
from bucketcatalog.format.footers import Footer, footer_digest, footer_start
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.format.sealing import FORMAT_VERSION, SEALED_BYTES, find_sealed, seal
from bucketcatalog.format.segments import RunRows

from ...kit.storing import facts_with, written

WORDS = core_tables()["harvest_errors"]


def test_another_footer_than_the_index_names_is_not_parsed() -> None:
    segment = written(RunRows(facts_with(WORDS, [{"1": "s", "2": "x"}]), WORDS, BlockClass.LIVE))
    (place,) = segment.places
    footer = pickle.loads(pickle.dumps(place)).row_group.footer
    data = segment.footer
    assert footer.needs()
    for wrong in (data[:-1], data + b"\0", b"", bytes([data[0] ^ 1]) + data[1:]):
        with pytest.raises(CorruptionError, match="its footer is not the one"):
            footer.give(wrong)
        assert footer.needs()
    footer.give(data)
    assert not footer.needs() and footer.layout.columns == segment.groups[0].footer.layout.columns


def test_nonsense_with_a_right_digest_is_named() -> None:
    for data in (b"", b"PAR1", b"\xff" * 30 + (30).to_bytes(4, "little") + b"PAR1"):
        with pytest.raises(CorruptionError, match="file has no readable footer"):
            _ = Footer("file", 4, len(data), footer_digest(data), data).layout


@pytest.mark.parametrize("end", [b"", b"PAR1", b"\0\0\0\0PAR2", b"\xff\xff\xff\xffPAR1", (89).to_bytes(4, "little") + b"PAR1"])
def test_what_does_not_end_as_parquet_does_is_named(end: bytes) -> None:
    assert footer_start((88).to_bytes(4, "little") + b"PAR1", 100, "file") == 4
    with pytest.raises(CorruptionError, match="file does not end"):
        footer_start(end, 100, "file")


def test_an_index_is_looked_for_as_far_back_as_one_can_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = seal(b"\x08" + bytes([FORMAT_VERSION]) + b"index" * 100)
    data = b"rows" * 100 + sealed + b"behind"
    assert find_sealed(data) == (400, 400 + len(sealed))
    monkeypatch.setattr(limits, "INDEX_BYTES", len(sealed) - SEALED_BYTES - 1)
    assert find_sealed(data) is None
