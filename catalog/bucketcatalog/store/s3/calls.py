"""Requests to one bucket: made by a client of this process, tried again where that may help, errors translated.

Pages of its names come as S3 gives them: in the order of their UTF-8 bytes, at most 1,000 a request.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import methodcaller
from typing import Any, TypeVar
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from ...errors import BucketCatalogError, OutcomeUnknown, StoreUnreachable, UnsupportedStore
from ..retry import for_seconds, retry
from ..secrets import Secrets
from ..tickets import missing
from .client import Connection, connect
from .clocks import StoreClock
from .failures import SENSELESS, translated, unprepared
from .options import S3Options

Result = TypeVar("Result")
Request = Callable[[Any], Result]
"""Asks something of a client, and reads the answer to its end."""
_PAGE = 1_000
_TOKEN = "NextContinuationToken"
_AWS = "amazonaws.com"
_PORTS = {"http": 80, "https": 443}
_RAISED = (ClientError, BotoCoreError, HTTPError, OSError, ValueError, *SENSELESS)


class Calls:
    """Requests to ``bucket``. ``place`` is how messages name it; unless ``usable`` the credentials are missing.

    Threads may share it, and so may forked processes: each has a client of its own.
    """

    def __init__(self, options: S3Options, bucket: str, place: str, *, usable: bool = True) -> None:
        self.options = options
        self.bucket = bucket
        self.place = place
        self.clock = StoreClock()
        self._secrets = Secrets("", options.secrets)
        self._usable = usable
        self._opened: tuple[int, Connection] | None = None

    @property
    def server(self) -> tuple[str, str]:
        """Address and partition of the server that requests go to; asks nothing."""
        with self._preparing():
            meta = self._connection().client.meta
        return meta.endpoint_url, meta.partition

    @property
    def region(self) -> str:
        """The region that requests are signed for; asks nothing."""
        with self._preparing():
            return str(self._connection().client.meta.region_name)

    def credentials(self) -> dict[str, str]:
        """What requests are signed with, by the names of the options. May ask a service or a program for it."""
        with self._preparing():
            connection = self._connection()
            if connection.credentials is None:
                return self.options.secrets
            key, secret, token = connection.credentials.get_frozen_credentials()[:3]
        return {"key": key, "secret": secret, **({"token": token} if token else {})}

    @property
    def authority(self) -> str:
        """Host and port of the server, without a port that the scheme implies: the same from every machine; asks nothing.

        All regions of AWS are one authority, for a bucket's name is taken once in all of them; another partition of AWS is another one.
        """
        endpoint, partition = self.server
        found = urlsplit(endpoint)
        host = (found.hostname or "").lower()
        if host.endswith((f".{_AWS}", f".{_AWS}.cn")):
            return f"s3.{_AWS}" if partition == "aws" else f"{partition}.s3.{_AWS}"
        shown = f"[{host}]" if ":" in host else host
        return shown if found.port in (None, _PORTS.get(found.scheme)) else f"{shown}:{found.port}"

    def once(self, doing: str, name: str, request: Request[Result]) -> Result:
        """What ``request`` gives; its error as one of this package's."""
        client = self._client()
        try:
            return request(client)
        except BucketCatalogError:
            raise
        except _RAISED as error:
            raise self._hidden(translated(error, doing, name, self.place)) from (None if self._secrets.shown_by(error) else error)

    def put(self, name: str, request: Request[dict[str, Any]]) -> None:
        """Make the request that shows an object, once. An answer without an etag is none of S3's: nobody knows what became of the put."""

        def asked(client: Any) -> None:
            if "ETag" not in request(client):
                raise OutcomeUnknown(
                    f"Cannot put {name!r} in {self.place}: the answer is none of S3's.",
                    next_step="Check endpoint_url, and what stands between it and this machine.",
                )

        self.once("put", name, asked)

    def repeated(self, doing: str, name: str, request: Request[Result]) -> Result:
        """What ``request`` gives, tried again for ``retry_timeout`` seconds where that may help; it must be one that can be repeated."""
        return retry(lambda: self.once(doing, name, request), for_seconds(self.options.retry_timeout))

    def listed(self, doing: str, prefix: str, request: Request[dict[str, Any]], *next_by: str) -> dict[str, Any]:
        """A page of a listing, tried again as ``repeated`` does. One that is truncated has at least one of ``next_by``.

        An answer that does not say whether more follows, or how to ask for it, is none of S3's, whatever its status: taken for the end of
        the listing it would make all that comes after look deleted.
        """

        def asked(client: Any) -> dict[str, Any]:
            page = request(client)
            if "IsTruncated" not in page:
                wrong = "the answer is not a listing"
            elif page["IsTruncated"] and not any(page.get(name) for name in next_by):
                wrong = "the answer is part of a listing and does not say how it goes on"
            else:
                return page
            raise StoreUnreachable(
                f"Cannot {doing} {prefix!r} in {self.place}: {wrong}.",
                next_step="Check endpoint_url, and what stands between it and this machine.",
            )

        return self.repeated(doing, prefix, asked)

    def _hidden(self, found: BucketCatalogError) -> BucketCatalogError:
        return type(found)(self._secrets.hide(found.message), next_step=found.next_step)

    @contextmanager
    def _preparing(self) -> Iterator[None]:
        """What fails inside fails before the store is asked anything, which is not to be taken for a request that failed."""
        try:
            yield
        except BucketCatalogError:
            raise
        except (*_RAISED, TypeError, AttributeError) as error:  # the last two where a program gives no credentials but other JSON
            raise self._hidden(unprepared(error, self.place)) from (None if self._secrets.shown_by(error) else error)

    def _client(self) -> Any:
        """The client of this process, with credentials that are good for the next request."""
        with self._preparing():
            connection = self._connection()
            connection.fetch_credentials()
        return connection.client

    def _connection(self) -> Connection:
        if self._opened is None or self._opened[0] != os.getpid():
            if not self._usable:
                raise missing(self.place)
            connection = connect(self.options)
            connection.client.meta.events.register("before-send.s3", self.clock.sending)
            connection.client.meta.events.register("after-call.s3", self._answered)
            self._opened = os.getpid(), connection
        return self._opened[1]

    def _answered(self, http_response: Any, **_: object) -> None:
        self.clock.answered(http_response.headers.get("date"))


def pages(calls: Calls, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[list[dict[str, Any]]]:
    """The entries (``Contents``) whose keys begin with ``prefix`` and sort after ``after``, at most ``limit``, page by page.

    Each request begins behind the last key of the one before, so that any one can be repeated; behind a page without entries, which S3
    may give, it begins by the page's token. ``UnsupportedStore`` where the server gives other keys than those behind ``after``.
    """
    left = limit
    start = {"StartAfter": after} if after else {}
    while left is None or left > 0:
        wanted = {"Bucket": calls.bucket, "Prefix": prefix, "MaxKeys": _PAGE if left is None else min(left, _PAGE), **start}
        page = calls.listed("list", prefix, methodcaller("list_objects_v2", **wanted), "Contents", _TOKEN)
        entries = page.get("Contents", [])
        if entries:
            _must_follow(after, entries, calls.place)
            yield entries
            after = entries[-1]["Key"]
        if not page["IsTruncated"]:
            return
        start = {"StartAfter": after} if entries else {"ContinuationToken": page[_TOKEN]}
        left = None if left is None else left - len(entries)


def _must_follow(after: str, entries: list[dict[str, Any]], place: str) -> None:
    """Its first and its last key tell, so that every page leads further and the listing ends."""
    if not after.encode() < entries[0]["Key"].encode() <= entries[-1]["Key"].encode():
        raise UnsupportedStore(
            f"Asked for the keys behind {after!r} in {place}, the server lists others, or lists them out of order.",
            next_step="Use a server that lists keys in the order of their bytes and knows start-after.",
        )


def level(calls: Calls, prefix: str) -> Iterator[tuple[list[dict[str, Any]], list[str]]]:
    """What lies directly below ``prefix``, page by page: entries, and prefixes that end in ``/``."""
    marker: dict[str, str] = {}
    while True:
        request = methodcaller("list_objects_v2", Bucket=calls.bucket, Prefix=prefix, Delimiter="/", **marker)
        page = calls.listed("list", prefix, request, _TOKEN)
        yield page.get("Contents", []), [found["Prefix"] for found in page.get("CommonPrefixes", ())]
        if not page.get("IsTruncated"):
            return
        marker = {"ContinuationToken": page[_TOKEN]}
