"""The seam on S3: every put is one request or a multipart upload, every listing is flat, paged and begins behind what is known."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import ClientError

from ... import clock
from ...errors import AccessDenied, NotFound, ObjectNotFound, StoreUnreachable, UnsupportedStore
from ...limits import SECOND
from ..base import ObjectInfo, UnfinishedPut, truncated
from ..elsewhere import ObjectStore
from ..object_names import check_most, check_name, check_prefix, check_range
from ..retry import for_seconds, retry
from ..tickets import redeemed
from . import uploads
from .calls import Calls, level, pages
from .options import S3Options, split_url

_CALLED = {"key": "aws_access_key_id", "secret": "aws_secret_access_key", "token": "aws_session_token"}
"""What the Rust crate ``object_store`` calls credentials."""
_GOOD_SECONDS = 300
"""For how long credentials of the usual chain are good at least: what runs out is fetched anew ten minutes before."""


class S3Store:
    """The store at ``s3://BUCKET/PATH``, opened with the options of ``S3Options``.

    Opening asks nothing. A put is one attempt, so that whoever has a deadline can keep it; all else is repeated for ``retry_timeout``
    seconds. Bodies are sent with a CRC-32 that the server checks; what the server knows of an object's checksum is checked when it is
    read whole. Times of objects have whole seconds, as HTTP has.

    A pickle holds the url and the options, but no credentials: those given as options can be used in this process and its forks only,
    see ``tickets``.
    """

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None = None, *, ticket: str | None = None) -> None:
        credentials = {} if ticket is None else redeemed(ticket)
        self._unknown = ticket if credentials is None else None
        self._options = S3Options.parse({**(storage_options or {}), **(credentials or {})})
        bucket, path = split_url(url)
        self._root = f"{path}/" if path else ""
        self.url = f"s3://{bucket}/{path}" if path else f"s3://{bucket}"
        self._calls = Calls(self._options, bucket, self.url, usable=credentials is not None)
        self._encryption = {
            header: value
            for header, value in (("ServerSideEncryption", self._options.sse), ("SSEKMSKeyId", self._options.sse_kms_key_id))
            if value is not None
        }

    def __repr__(self) -> str:
        return f"S3Store({self.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.url, *self._options.packed(self._unknown))

    @property
    def server(self) -> str:
        """Host and port of the server, which tell buckets of one name apart; no request is made."""
        return self._calls.authority

    @property
    def concurrency(self) -> int:
        """The option ``max_concurrency``."""
        return self._options.max_concurrency

    @property
    def place(self) -> tuple[Calls, str]:
        """Requests to the bucket, and what the keys of the store's objects begin with."""
        return self._calls, self._root

    def for_object_store(self) -> ObjectStore | None:
        """See ``elsewhere.for_object_store``; no request is made."""
        options = self._options.for_object_store(self._calls.server[0], self._calls.region)
        return None if options is None else ObjectStore(options, None if self._options.anon else self.credentials)

    def credentials(self) -> tuple[dict[str, str], int | None]:
        """What requests are signed with now, as ``ObjectStore`` has it. Pickled it is the store, and so no secret."""
        good_until = None if self._options.secrets else clock.now_us() // SECOND + _GOOD_SECONDS
        return {_CALLED[name]: value for name, value in self._calls.credentials().items()}, good_until

    def put(self, name: str, data: bytes) -> None:
        """Atomic and durable on return: PutObject, or above 32 MiB a multipart upload."""
        check_name(name)
        key, body = self._root + name, bytes(data)
        if len(body) > uploads.THRESHOLD_BYTES:
            uploads.upload(self._calls, key, name, body, self._encryption)
        else:
            bucket = self._calls.bucket
            self._calls.put(name, lambda c: c.put_object(Bucket=bucket, Key=key, Body=body, **self._encryption))

    def get(self, name: str, *, most: int | None = None) -> bytes:
        """All bytes of the object or its first ``most``, or ``ObjectNotFound``."""
        check_most(most)
        wanted = self._of(name)

        def request(client: Any) -> bytes:
            body = client.get_object(**wanted)["Body"]
            return body.read() if most is None else _beginning(body, most)

        return self._calls.repeated("read", name, request)

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``, or ``TruncatedObject``; negative offsets count from the end. One request.

        ``UnsupportedStore`` where the server gives the whole object instead.
        """
        check_range(length)
        if not length:
            size = self.head(name).size
            if offset > size:
                raise truncated(self.url, name, offset)
            return b""
        if offset < 0:
            return self._part(name, offset, -offset)[:length]
        data = self._part(name, offset, length)
        if len(data) < length:
            raise truncated(self.url, name, offset + length)
        return data

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        """Every object below ``prefix`` that sorts after ``after``, a request for each 1,000."""
        check_prefix(prefix)
        if after > prefix and not after.startswith(prefix):
            return iter(())
        return self._list(self._root + prefix, self._root + after if after > prefix else "", limit)

    def _list(self, prefix: str, after: str, limit: int | None) -> Iterator[ObjectInfo]:
        start = len(self._root)
        for entries in pages(self._calls, prefix, after=after, limit=limit):
            for entry in entries:
                yield ObjectInfo(entry["Key"][start:], entry["Size"], _listed_time(entry["LastModified"]))

    def list_prefixes(self, prefix: str, *, begin: str = "") -> builtins.list[str]:
        """The distinct next parts below ``prefix``, a request for each 1,000, also of those that do not ``begin`` so."""
        check_prefix(prefix)
        start = len(self._root) + len(prefix)
        found = (found[start:-1] for _, prefixes in level(self._calls, self._root + prefix) for found in prefixes)
        return sorted(
            part for part in found if part and part.startswith(begin)
        )  # S3's order is that of the parts with their slash

    def head(self, name: str) -> ObjectInfo:
        """Size and time of the object, or ``ObjectNotFound``."""
        wanted = self._of(name)

        def request(client: Any) -> ObjectInfo:
            found = client.head_object(**wanted)
            return ObjectInfo(name, found["ContentLength"], _header_time(found["LastModified"]))

        try:
            return self._calls.repeated("read", name, request)
        except ObjectNotFound:
            self._find_bucket()
            raise

    def delete(self, name: str) -> None:
        """The object is gone on return; a bucket with versions keeps it behind a delete marker."""
        wanted = self._of(name)
        try:
            self._calls.repeated("delete", name, lambda c: c.delete_object(**wanted))
        except ObjectNotFound:  # what some servers say where S3 says that it is gone
            self._find_bucket()

    def unfinished_puts(self) -> Iterator[UnfinishedPut]:
        """Multipart uploads that were not completed."""
        return uploads.unfinished(self._calls, self._root)

    def discard(self, put: UnfinishedPut) -> None:
        """Abort a multipart upload."""
        uploads.discard(self._calls, self._root + put.name, put)

    def now_us(self, below: str | None = None) -> int:
        """The store's time, from the ``Date`` of an answer at most 30 s old; a request for it where there is none. Nothing is put."""
        if not self._calls.clock.known and not self._asks_time() and below is not None:
            retry(self._learn_time, for_seconds(self._calls.options.retry_timeout))
        return self._calls.clock.now_us()

    def _asks_time(self) -> bool:
        """Whether the answer to a request for the time had it."""
        asked = clock.monotonic()
        with suppress(NotFound):  # a refusal is dated too; what it refuses is said where something is asked for
            self._find_bucket()
        return self._calls.clock.learnt_since(asked)

    def _learn_time(self) -> None:
        """Ask for the time; every answer of S3 has a date, so one that has none was cut on its way and may be whole the next time."""
        if not self._asks_time():
            raise StoreUnreachable(
                f"The time of {self.url} cannot be learnt: its answers have no date.",
                next_step="Try again; if it stays so, see that nothing on the way takes their Date header.",
            )

    def _find_bucket(self) -> None:
        """``StoreNotFound`` where there is no bucket, as answers without a body do not tell; who may not ask is not told either."""
        with suppress(AccessDenied):
            self._calls.repeated("open", "", lambda c: c.head_bucket(Bucket=self._calls.bucket))

    def _of(self, name: str) -> dict[str, str]:
        check_name(name)
        return {"Bucket": self._calls.bucket, "Key": self._root + name}

    def _part(self, name: str, offset: int, most: int) -> bytes:
        """``most`` bytes from ``offset``, fewer where the object ends before that."""
        wanted = {**self._of(name), "Range": f"bytes={offset}" if offset < 0 else f"bytes={offset}-{offset + most - 1}"}

        def request(client: Any) -> bytes:
            try:
                answer = client.get_object(**wanted)
                body: bytes = answer["Body"].read()
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") != "InvalidRange":
                    raise
                return b""  # nothing lies behind the end, nor at the end of an empty object
            is_whole = answer["ResponseMetadata"]["HTTPStatusCode"] == 200
            if len(body) > most or (is_whole and offset > 0):
                raise UnsupportedStore(
                    f"The server of {self.url} cannot read parts of objects.",
                    next_step="Check endpoint_url, and what stands before the server; or copy the catalog to a store that can.",
                )
            return body

        return self._calls.repeated("read", name, request)


def _beginning(body: Any, most: int) -> bytes:
    """At most so many bytes of what is being answered; the connection is closed on more, which is not fetched.

    Only a read that finds the end sees whether an answer was cut short, or has another checksum than it should.
    """
    parts: list[bytes] = []
    while most and (part := body.read(most)):
        parts.append(part)
        most -= len(part)
    if not most:
        body.close()
    return b"".join(parts)


def _reopened(url: str, options: dict[str, Any], ticket: str | None) -> S3Store:
    return S3Store(url, options, ticket=ticket)


def _header_time(text: str) -> int:
    return int(parsedate_to_datetime(text).timestamp()) * SECOND


def _listed_time(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * SECOND
