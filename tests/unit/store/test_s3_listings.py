"""Listings that S3 permits and few servers give, and some that end without saying how they go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bucketcatalog.errors import StoreUnreachable, UnsupportedStore
from bucketcatalog.store.inventory import Span
from bucketcatalog.store.s3.inventory import S3Inventory
from bucketcatalog.store.s3.store import S3Store

from ...kit.answering import Answering, Asked, answering

MORE = "<IsTruncated>true</IsTruncated>"
END = "<IsTruncated>false</IsTruncated>"


def page(*parts: str, root: str = "ListBucketResult") -> tuple[int, bytes]:
    return 200, f"<{root}>{''.join(parts)}</{root}>".encode()


def entry(key: str, tag: str = "Contents") -> str:
    return f"<{tag}><Key>{key}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></{tag}>"


def token(text: str) -> str:
    return f"<NextContinuationToken>{text}</NextContinuationToken>"


def store(server: Answering) -> S3Store:
    return S3Store("s3://bucket", server.options)


def inventory(server: Answering) -> S3Inventory:
    return S3Inventory("s3://bucket", server.options)


def test_a_page_without_entries_is_not_the_end_of_a_listing() -> None:
    def answer(asked: Asked) -> tuple[int, bytes]:
        after = asked.query.get("continuation-token") or asked.query.get("start-after")
        return {
            None: page(MORE, token("first"), entry("a")),
            "a": page(MORE, token("second")),
            "second": page(MORE, token("third")),
            "third": page(MORE, token("fourth"), entry("b")),
            "b": page(END, entry("c")),
        }[after]

    with answering(answer) as server:
        assert [info.name for info in store(server).list("")] == ["a", "b", "c"]


def test_a_page_with_entries_and_without_a_token_is_gone_on_from_by_its_last_key() -> None:
    pages = {None: page(MORE, entry("a")), "a": page(END, entry("b"))}
    with answering(lambda asked: pages[asked.query.get("start-after")]) as server:
        assert [info.name for info in store(server).list("")] == ["a", "b"]


@pytest.mark.parametrize("second", [["a"], ["b", "a"]])
def test_a_server_that_does_not_list_behind_a_key_is_not_asked_for_ever(second: list[str]) -> None:
    answers = iter([page(MORE, token("t"), entry("a")), page(MORE, token("t"), *map(entry, second))])
    with answering(lambda _: next(answers)) as server:
        found = store(server).list("")
        assert next(found).name == "a"
        with pytest.raises(UnsupportedStore, match=r"behind 'a'"):
            list(found)


UPLOADS, VERSIONS = "ListMultipartUploadsResult", "ListVersionsResult"
LISTINGS: dict[str, tuple[tuple[int, bytes], Callable[[Answering], Any]]] = {
    "list": (page(MORE), lambda server: list(store(server).list(""))),
    "list_prefixes": (page(MORE, entry("a")), lambda server: store(server).list_prefixes("")),
    "unfinished_puts": (page(MORE, root=UPLOADS), lambda server: list(store(server).unfinished_puts())),
    "objects": (page(MORE, entry("a")), lambda server: list(inventory(server).objects(Span()))),
    "versions": (page(MORE, entry("a", "Version"), root=VERSIONS), lambda server: list(inventory(server).versions(Span()))),
    "prefixes": (
        page(MORE, "<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>"),
        lambda server: inventory(server).prefixes("", 3),
    ),
}


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_listing_that_does_not_say_how_it_goes_on_is_an_error_and_not_its_end(listing: str) -> None:
    answer, call = LISTINGS[listing]
    with answering(lambda _: answer) as server, pytest.raises(StoreUnreachable, match=r"does not say how it goes on.*Next: "):
        call(server)
