"""A bucket whose inventory is taken: its versioning, its pages of objects or versions, headers and tags of single objects.

Keys are asked for percent-encoded and left so: decoding costs only where something is encoded, and keys that are not UTF-8 survive it.
Pages are asked for with the token of the page before, which servers answer faster than a listing that begins behind a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from botocore.exceptions import ClientError

from ...errors import AccessDenied, ObjectNotFound, UnsupportedStore
from ..base import Store
from ..inventory import IS_DELETE_MARKER, ListedPage, Span
from ..tickets import redeemed
from ..wrappers import Wrapped
from .calls import Calls
from .failures import DENIED
from .options import S3Options, split_url
from .store import S3Store

_ORDER = "bucketcatalog:order"
_NO_SUCH_CALL = {"NotImplemented", "MethodNotAllowed"}
_VERSION_OR_MARKER = re.compile(rb"<(Version|DeleteMarker)[\s>]")


class S3Inventory:
    """The inventory of ``s3://BUCKET/PATH``, opened with the options of ``S3Options``; pickles as an ``S3Store`` does."""

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None = None, *, ticket: str | None = None) -> None:
        credentials = {} if ticket is None else redeemed(ticket)
        self._unknown = ticket if credentials is None else None
        self._options = S3Options.parse({**(storage_options or {}), **(credentials or {})})
        self.bucket, path = split_url(url)
        self.folder = f"{path}/" if path else ""
        self._url = f"s3://{self.bucket}/{path}" if path else f"s3://{self.bucket}"
        self._calls = Calls(self._options, self.bucket, self._url, usable=credentials is not None)
        self.authority = self._calls.authority if self._unknown is None else ""

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self._url, *self._options.packed(self._unknown))

    @property
    def concurrency(self) -> int:
        """The option ``max_concurrency``."""
        return self._options.max_concurrency

    def versioning(self) -> str | None:
        """See ``Inventory``. GetBucketVersioning; ``StoreNotFound`` where there is no such bucket.

        ``UnsupportedStore`` where what answers is not S3, ``AccessDenied`` where nobody has these credentials: neither says anything about
        the bucket.
        """

        def ask(client: Any) -> str | None:
            try:
                return str(client.get_bucket_versioning(Bucket=self.bucket).get("Status", ""))
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in _NO_SUCH_CALL | DENIED:
                    return None
                raise

        return self._calls.repeated("open", "", ask)

    def objects(self, span: Span) -> Iterator[ListedPage]:
        """See ``Inventory``. ListObjectsV2."""
        wanted: dict[str, Any] = {"Bucket": self.bucket, "Prefix": span.prefix, "EncodingType": "url"}
        if span.after:
            wanted["StartAfter"] = span.after
        while True:
            page = self._calls.listed("list", span.prefix, lambda c: c.list_objects_v2(**wanted), "NextContinuationToken")
            listed = ListedPage(page.get("Contents", ()), _is_encoded(page))
            yield listed
            if not page.get("IsTruncated") or _is_beyond(listed, span):
                return
            wanted["ContinuationToken"] = page["NextContinuationToken"]

    def versions(self, span: Span) -> Iterator[ListedPage]:
        """See ``Inventory``. ListObjectVersions; boto3 tears versions and delete markers apart, the order is that of the answer's tags.

        ``UnsupportedStore`` where a page ends in a key that is not UTF-8: the next one cannot be asked for.
        """
        wanted: dict[str, Any] = {"Bucket": self.bucket, "Prefix": span.prefix, "EncodingType": "url"}
        if span.after:
            wanted["KeyMarker"] = span.after

        def request(client: Any) -> Any:
            client.meta.events.register("before-parse.s3.ListObjectVersions", _keep_order, unique_id=_ORDER)
            return client.list_object_versions(**wanted)

        while True:
            page = self._calls.listed("list", span.prefix, request, "NextKeyMarker")
            listed = ListedPage(_in_order(page), _is_encoded(page))
            yield listed
            if not page.get("IsTruncated") or _is_beyond(listed, span):
                return
            wanted["KeyMarker"] = self._marker(page["NextKeyMarker"], listed.is_encoded)
            wanted["VersionIdMarker"] = page.get("NextVersionIdMarker", "")

    def prefixes(self, prefix: str, pages: int) -> list[str]:
        """See ``Inventory``. ListObjectsV2 with a delimiter, at most ``pages`` requests; a page without prefixes is the last.

        Prefixes that are not UTF-8 cannot be asked for, and are left out.
        """
        wanted: dict[str, Any] = {"Bucket": self.bucket, "Prefix": prefix, "EncodingType": "url", "Delimiter": "/"}
        found: list[str] = []
        for _ in range(pages):
            page = self._calls.listed("list", prefix, lambda c: c.list_objects_v2(**wanted), "NextContinuationToken")
            below = [_raw(item["Prefix"], _is_encoded(page)) for item in page.get("CommonPrefixes", ())]
            found += [text for text in map(_text, below) if text is not None]
            if not below or not page.get("IsTruncated"):
                break
            wanted["ContinuationToken"] = page["NextContinuationToken"]
        return found

    def first(self, span: Span) -> str | None:
        """See ``Inventory``. ListObjectsV2 for one key."""
        wanted = {"Bucket": self.bucket, "Prefix": span.prefix, "EncodingType": "url", "StartAfter": span.after, "MaxKeys": 1}
        page = self._calls.repeated("list", span.prefix, lambda c: c.list_objects_v2(**wanted))
        raw = next((_raw(item["Key"], _is_encoded(page)) for item in page.get("Contents", ())), None)
        return None if raw is None or (span.upto is not None and raw > span.upto.encode()) else _text(raw)

    def head(self, key: str, version: str | None) -> Mapping[str, Any] | None:
        """See ``Inventory``. HeadObject; None too where the client's own key would be needed (SSE-C).

        Checksums are left out where they may not be seen, which for objects encrypted with KMS takes the right to use the key.
        """
        wanted = self._of(key, version)

        def ask(**more: str) -> Mapping[str, Any]:
            found: Mapping[str, Any] = self._calls.repeated("read", key, lambda c: c.head_object(**wanted, **more))
            return found

        try:
            try:
                return ask(ChecksumMode="ENABLED")
            except AccessDenied:
                return ask()
        except (ObjectNotFound, UnsupportedStore):
            return None

    def tags(self, key: str, version: str | None) -> dict[str, str] | None:
        """See ``Inventory``. GetObjectTagging."""
        wanted = self._of(key, version)
        try:
            found = self._calls.repeated("read", key, lambda c: c.get_object_tagging(**wanted))
        except ObjectNotFound:
            return None
        return {tag["Key"]: tag["Value"] for tag in found.get("TagSet", ())}

    def own(self, store: Store) -> str | None:
        """See ``Inventory``."""
        inner = store
        while isinstance(inner, Wrapped):
            inner = inner.inner
        if not isinstance(inner, S3Store):
            return None
        calls, root = inner.place
        return root if calls.bucket == self.bucket and calls.authority == self.authority else None

    def _marker(self, marker: str, is_encoded: bool) -> str:
        """The key that the next page begins behind; ``UnsupportedStore`` where a request cannot name it, for keys would be skipped."""
        raw = _raw(marker, is_encoded)
        text = _text(raw)
        if text is None:
            raise UnsupportedStore(
                f"The versions of s3://{self.bucket} cannot be listed beyond the key {raw!r}, where a page ends: it is not UTF-8.",
                next_step="Rename or delete the object, or harvest paths of the bucket that do not hold it.",
            )
        return text

    def _of(self, key: str, version: str | None) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": key, **({} if version is None else {"VersionId": version})}


def _reopened(url: str, options: dict[str, Any], ticket: str | None) -> S3Inventory:
    return S3Inventory(url, options, ticket=ticket)


def _is_encoded(page: Mapping[str, Any]) -> bool:
    return page.get("EncodingType") == "url"


def _raw(key: str, is_encoded: bool) -> bytes:
    return unquote_to_bytes(key.replace("+", " ")) if is_encoded else key.encode()


def _text(raw: bytes) -> str | None:
    """None where it is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _is_beyond(page: ListedPage, span: Span) -> bool:
    """Whether the page's last key lies behind the span."""
    if span.upto is None or not page.entries:
        return False
    return _raw(page.entries[-1]["Key"], page.is_encoded) > span.upto.encode()


def _keep_order(response_dict: Mapping[str, Any], customized_response_dict: dict[str, Any], **_: object) -> None:
    if response_dict["status_code"] < 300:
        customized_response_dict[_ORDER] = _VERSION_OR_MARKER.findall(response_dict["body"])


def _in_order(page: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    versions, markers = page.get("Versions", []), page.get("DeleteMarkers", [])
    order: list[bytes] = page.get(_ORDER, [])
    if len(order) != len(versions) + len(markers) or order.count(b"Version") != len(versions):
        raise UnsupportedStore(
            "The server's answer does not say in which order versions and delete markers come.",
            next_step="Check that the server speaks S3.",
        )
    if not markers:
        return list(versions)
    for marker in markers:
        marker[IS_DELETE_MARKER] = True
    both = {b"Version": iter(versions), b"DeleteMarker": iter(markers)}
    return [next(both[kind]) for kind in order]
