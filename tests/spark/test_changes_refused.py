"""What cannot be asked of the change feed is refused at ``load()``; no session is needed to see that."""

from __future__ import annotations

import pytest

from bucketcatalog import InvalidOption
from pyspark_bucketcatalog.reading.relation import open_relation

from .sample import Sample


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingVersion": "node-1@3", "endingVersion": "node-1@0"}, "The start lies after the end: of writer 'node-1'"),
        ({"startingTimestamp": "2024-05-02", "endingTimestamp": "2024-05-01"}, "The start lies after the end: 2024-05-02 is"),
        ({"table": "log"}, "The table 'log' is about the catalog: only tables of rows have changes"),
        ({"table": "log", "bucket": "cats"}, "The table 'log' is about the catalog: only tables of rows have changes"),
        ({"table": "harvest_errors", "bucket": "cats"}, "Table 'harvest_errors' has no buckets"),
        ({"table": "deleted_objects"}, "The table 'deleted_objects' shows tombstones: .* Next: Ask for those of objects"),
    ],
)
def test_a_feed_that_cannot_be_is_refused(sample: Sample, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        open_relation({"path": sample.path, "readChangeFeed": "true", **options})


@pytest.mark.parametrize("table", ["log", "deleted_objects"])
def test_a_difference_that_cannot_be_is_refused(sample: Sample, table: str) -> None:
    with pytest.raises(InvalidOption, match="only tables of rows have changes"):
        open_relation({"path": sample.path, "readDifference": "true", "table": table})


def test_a_difference_can_be_taken_either_way(sample: Sample) -> None:
    ends = {"startingVersion": "node-1@3", "endingVersion": "node-1@0"}
    assert open_relation({"path": sample.path, "readDifference": "true", **ends}).schema.names[0] == "_change_type"


def test_a_feed_in_order_is_not_refused(sample: Sample) -> None:
    for ends in ({"startingVersion": sample.before}, {"startingVersion": "node-1@0", "endingVersion": sample.before}):
        assert open_relation({"path": sample.path, "readChangeFeed": "true", **ends}).schema.names[0] == "_change_type"
