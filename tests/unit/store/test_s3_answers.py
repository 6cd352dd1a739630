"""What a store makes of answers that S3 does not give and other servers do."""

from __future__ import annotations

import pytest

from bucketcatalog import clock
from bucketcatalog.errors import BucketCatalogError, StoreNotFound, StoreUnreachable, TruncatedObject, UnsupportedStore
from bucketcatalog.store.s3.store import S3Store

from ...kit.answering import Answer, Asked, answering, refusal

CONTENT = b"0123456789"


@pytest.mark.parametrize(("offset", "length"), [(0, 3), (2, 3), (5, 5), (5, 10), (-3, 3), (-3, 1)])
def test_a_server_that_cannot_read_parts_is_an_error_and_not_the_wrong_bytes(offset: int, length: int) -> None:
    with answering(lambda _: (200, CONTENT)) as server:
        store = S3Store("s3://bucket", server.options)
        with pytest.raises(UnsupportedStore, match=r"cannot read parts of objects.*Next: "):
            store.get_range("a", offset, length)


def test_a_whole_object_is_the_right_answer_where_the_whole_was_asked_for() -> None:
    with answering(lambda _: (200, CONTENT)) as server:
        store = S3Store("s3://bucket", server.options)
        assert store.get_range("a", 0, 10) == store.get_range("a", -10, 10) == store.get_range("a", -20, 20) == CONTENT
        with pytest.raises(TruncatedObject):
            store.get_range("a", 0, 11)


def test_more_than_the_part_that_was_asked_for_is_an_error() -> None:
    with answering(lambda _: (206, CONTENT, {"Content-Range": "bytes 2-11/20"})) as server:
        store = S3Store("s3://bucket", server.options)
        with pytest.raises(UnsupportedStore, match="cannot read parts"):
            store.get_range("a", 2, 3)


def test_who_writes_to_a_server_whose_answers_have_no_date_is_refused_and_who_reads_goes_by_the_machine() -> None:
    with answering(lambda _: (200, b"", {"Date": ""})) as server:
        store = S3Store("s3://bucket", server.options)
        with pytest.raises(StoreUnreachable, match=r"its answers have no date\. Next: "):
            store.now_us("w/db/transactions/")
        assert len(server.asked) > 1 and {asked.method for asked in server.asked} == {"HEAD"}
        before = clock.now_us()
        assert before <= store.now_us() <= clock.now_us()


@pytest.mark.parametrize("answer", [refusal(404, "NoSuchKey"), (404, b"")])
def test_what_is_deleted_already_is_gone(answer: Answer) -> None:
    """S3 says 204 for it; some servers say 404, as the interface of a store does not."""

    def answers(asked: Asked) -> Answer:
        return answer if asked.method == "DELETE" else (200, b"")

    with answering(answers) as server:
        S3Store("s3://bucket", server.options).delete("a")
        assert [asked.method for asked in server.asked] == ["DELETE", "HEAD"]


@pytest.mark.parametrize("answer", [refusal(404, "NoSuchBucket"), (404, b"")])
def test_nothing_is_gone_where_there_is_no_bucket(answer: Answer) -> None:
    with answering(lambda _: answer) as server:
        with pytest.raises(BucketCatalogError) as caught:
            S3Store("s3://bucket", server.options).delete("a")
        assert type(caught.value) is StoreNotFound
