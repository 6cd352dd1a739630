"""Errors of one of several catalogs: they stay what they are, and say whose they are."""

from __future__ import annotations

import pytest

from bucketcatalog.errors import BucketCatalogError, StoreError
from bucketcatalog.query.members import telling_of


class Own(StoreError):
    """An error that is made of something else than a message."""

    def __init__(self, place: str, *, size: int) -> None:
        super().__init__(f"{place} has {size} bytes.", next_step="Look there.")
        self.size = size


def test_an_error_that_is_told_with_its_catalog_stays_what_it_is() -> None:
    blocked = StoreError("A link is in the way.", next_step="Move it.")
    blocked.in_the_way = "w/default/"
    for error in (blocked, Own("w/x", size=5)):
        with pytest.raises(StoreError) as told, telling_of("/data/a"):
            raise error
        assert type(told.value) is type(error) and told.value.__cause__ is error
        assert told.value.message == str(told.value.args[0]) == f"{error.message} That is so in /data/a."
        assert {**told.value.__dict__, "message": error.message} == error.__dict__
        assert "That is so in /data/a. Next: " in str(told.value)


@pytest.mark.parametrize(
    ("name", "message", "is_told"),
    [
        ("/data/a", "There is nothing at /data/ab.", False),
        ("/data/a", "There is nothing at /data/a.b.", False),
        ("/data/a", "There is nothing at /old/data/a.", False),
        ("/data/a", "There is nothing at /data/a.", True),
        ("/data/a", "'/data/a' has nothing.", True),
        ("/data/a", "/data/a/w/default is a file.", True),
        ("s3://lake/inv", "s3://lake/inventory is not there.", False),
        ("north", "The table 'north' is not there.", False),
    ],
)
def test_a_catalog_is_told_unless_the_message_says_where_it_is(name: str, message: str, is_told: bool) -> None:
    with pytest.raises(BucketCatalogError) as told, telling_of(name):
        raise BucketCatalogError(message)
    assert told.value.message == message + ("" if is_told else f" That is so in {name}.")
