"""Any other store that fsspec knows, for reading; for writing those whose puts are atomic.

A put must publish the whole object or nothing, also when the writer dies half way. fsspec does not promise that, so the stores for
which it is known are listed here, and a put or delete on any other is refused:

=====================  =======  ============================================================================================
protocol               writes   why
=====================  =======  ============================================================================================
gs, gcs                yes      an upload, resumable or not, is published when its last byte has arrived
abfs, abfss, az        yes      Put Blob, or blocks that nothing shows before Put Block List
memory                 yes      one assignment of a complete buffer
file, local            no       written in place: half a file is visible. ``LocalStore`` does it right
ftp, sftp, ssh, smb    no       written in place
hdfs, webhdfs          no       the name is there from the first byte on
http, https, github    no       nothing to put with
zip, tar and caches    no       an archive is rewritten, a cache answers for what is behind it
=====================  =======  ============================================================================================

Listings are never cached: a cached one would not show what was put meanwhile. Storage options reach fsspec and nothing else; neither
the url, nor ``repr``, nor an error shows them.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from typing import Any

from .. import clock
from ..errors import ObjectNotFound, StoreError, UnsupportedStore
from .base import ObjectInfo, UnfinishedPut, time_unknown, truncated
from .learnt import Moment
from .object_names import TEMPORARY, check_most, check_name, check_prefix, check_range, holds_objects, walk
from .remote_failures import guarded, import_filesystem, open_filesystem
from .remote_files import entries, flat_entries, modified_us
from .secrets import Secrets
from .tickets import is_carried, missing, redeemed, ticket_for

ATOMIC_PUTS = frozenset({"gs", "gcs", "abfs", "abfss", "az", "memory"})
"""Protocols whose puts publish a whole object or nothing. All of them list flat, so that no directory of theirs is empty."""

_UPPER_FOLDERS = 3
"""Levels of folders that are listed one by one where everything is looked at: a catalog's writers, databases and kinds of files."""


class FsspecStore:
    """The store at an fsspec ``url``, opened with ``storage_options``.

    Opening creates nothing. The time is the one that the store gave to the last put of this instance, if that is at most 30 s old, else to
    one that is made to learn it; what a store does not stamp with a time shows as 0. A pickle holds the url, and neither the options nor
    what of the url is secret: these can be used in this process and its forks only, see ``tickets``.
    """

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None = None, *, ticket: str | None = None) -> None:
        kept = None if ticket is None else redeemed(ticket)
        self._ticket = ticket if kept is None else None
        url, options = (url, storage_options) if kept is None else kept
        self._address, self._options = url, dict(options or {})
        self._secrets = Secrets(url, self._options)
        self.url = self._secrets.public_url
        self._protocol = url.partition("://")[0].partition("::")[0]
        self._writable = self._protocol in ATOMIC_PUTS
        self._opened: tuple[int, Any, str] | None = None
        self._last_put: tuple[str, Moment, int] | None = None
        self._offset: tuple[Moment, int] | None = None
        import_filesystem(self._protocol, self.url)
        if self._ticket is None:
            self._connect()

    def __repr__(self) -> str:
        return f"FsspecStore({self.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._ticket is not None:
            return _reopened, (self.url, self._ticket)
        if is_carried() or (not self._options and self._address == self.url):
            return FsspecStore, (self._address, self._options)
        return _reopened, (self.url, ticket_for((self._address, self._options)))

    @property
    def server(self) -> str:
        """What the options say of whose it is: containers of one name are told apart by their accounts."""
        return " ".join(str(self._options.get(name, "")) for name in ("account_name", "endpoint_url")).strip()

    @property
    def concurrency(self) -> int:
        """Sixteen, as for any store over a network."""
        return 16

    def put(self, name: str, data: bytes) -> None:
        """Atomic and durable on return, as far as the store says; ``UnsupportedStore`` where it is not known to be."""
        check_name(name)
        self._must_be_writable("put")
        with guarded(self._secrets, "put", name):
            fs, path = self._at(name)
            fs.pipe_file(path, bytes(data))
        self._last_put = (name, Moment.now(), clock.now_us())

    def get(self, name: str, *, most: int | None = None) -> bytes:
        """All bytes of the object or its first ``most``, or ``ObjectNotFound``; of an empty one these may cost another request."""
        check_most(most)
        if most is None:
            return self._cat(name, {})
        try:
            return self._cat(name, {"start": 0, "end": max(most, 1)})[:most]
        except StoreError:
            if self.head(name).size:
                raise
            return b""  # some stores answer a range of an empty object with an error

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``, or ``TruncatedObject``; negative offsets cost a request for the size."""
        check_range(length)
        if offset < 0 or not length:
            size = self.head(name).size
            if offset < 0:
                offset = max(0, size + offset)
                length = min(length, size - offset)
            if offset + length > size:
                raise truncated(self.url, name, offset + length)
            if not length:
                return b""
        try:
            data = self._cat(name, {"start": offset, "end": offset + length})
        except StoreError:
            if self.head(name).size >= offset + length:
                raise
            data = b""  # some stores answer a range behind the end with an error
        if len(data) > length:
            raise UnsupportedStore(f"{self.url} cannot read parts of objects.", next_step="Copy the catalog to a store that can.")
        if len(data) < length:
            raise truncated(self.url, name, offset + length)
        return data

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        """Every object below ``prefix`` that sorts after ``after``.

        Everything at once costs an object store one flat listing. Where ``after`` or ``limit`` narrow it, directories are listed one
        by one, and only those that can hold what is wanted.
        """
        check_prefix(prefix)
        if after > prefix and not after.startswith(prefix):
            return iter(())
        whole = self._writable and not after and limit is None
        found = self._list_flat(prefix) if whole else walk(prefix, after, self._entries, self._info)
        return islice(self._guarded_list(found, prefix), limit)

    def list_prefixes(self, prefix: str, *, begin: str = "") -> builtins.list[str]:
        """The directories below ``prefix`` that hold an object at any depth, in byte order; no other than begin so are listed."""
        check_prefix(prefix)
        parts = sorted(part[:-1] for part, _ in self._entries(prefix) if part.endswith("/") and part[:-1].startswith(begin))
        return parts if self._writable else [part for part in parts if holds_objects(f"{prefix}{part}/", self._entries)]

    def head(self, name: str) -> ObjectInfo:
        """Size and time of the object, or ``ObjectNotFound``."""
        check_name(name)
        with guarded(self._secrets, "get", name):
            fs, path = self._at(name)
            info = fs.info(path)
            if info.get("type") != "file":
                raise FileNotFoundError(path)
        return self._info(name, info)

    def delete(self, name: str) -> None:
        """The object is gone on return; ``UnsupportedStore`` where puts are not supported either."""
        check_name(name)
        self._must_be_writable("delete")
        self._remove(name)

    def unfinished_puts(self) -> Iterator[UnfinishedPut]:
        """What asking for the time has left where it might not be removed; of puts themselves fsspec has no call that tells.

        The upper folders are listed one by one and each of those below them at once, so that no more is held than is below one of these.
        """
        if self._writable:
            yield from self._left("", _UPPER_FOLDERS)

    def _left(self, prefix: str, upper: int) -> Iterator[UnfinishedPut]:
        """The temporary objects below a prefix that has so many levels of upper folders."""
        folders = []
        for name, info in self._found(prefix, whole=not upper):
            if info["type"] == "directory":
                folders.append(f"{name}/")
            elif name.rpartition("/")[2].startswith(TEMPORARY):
                yield UnfinishedPut(name, modified_us(info))
        for folder in sorted(folders):
            yield from self._left(folder, upper - 1)

    def _found(self, prefix: str, *, whole: bool) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The ``whole`` of what is below a prefix or what lies directly there, by full names, temporary objects too."""
        try:
            with guarded(self._secrets, "list", prefix):
                fs, directory = self._at(prefix[:-1])
                found = fs.find(directory, detail=True).values() if whole else fs.ls(directory, detail=True)
        except ObjectNotFound:
            return
        for info in found:
            path = str(info["name"]).rstrip("/")
            if path.startswith(f"{directory}/"):
                yield prefix + path[len(directory) + 1 :], info

    def discard(self, put: UnfinishedPut) -> None:
        """Remove what asking for the time has left. ``ValueError`` for anything else."""
        if not put.name.rpartition("/")[2].startswith(TEMPORARY):
            raise ValueError(f"{put.name!r} is not a temporary object")
        self._remove(put.name)

    def now_us(self, below: str | None = None) -> int:
        """The store's time, learnt from what it stamped on the last put, or for one who writes on an empty object that is put for that."""
        if self._offset is None or not self._offset[0].holds:
            put, self._last_put, self._offset = self._last_put, None, None
            if put is not None and put[1].holds:
                self._offset = self._stamped(*put)
            if self._offset is None and below is not None:
                self._offset = self._asked(below)
        return clock.now_us() + (self._offset[1] if self._offset else 0)

    def _stamped(self, name: str, at: Moment, put_us: int) -> tuple[Moment, int] | None:
        """When the offset was learnt, and what it is; None where the store does not say."""
        try:
            with guarded(self._secrets, "get", name):
                fs, path = self._at(name)
                stamped = modified_us(fs.info(path))
        except ObjectNotFound:
            return None
        return (at, stamped - put_us) if stamped else None

    def _asked(self, below: str) -> tuple[Moment, int]:
        """The offset as a put tells it that leaves nothing; where a writer may not delete, an object that no listing shows."""
        check_prefix(below)
        self._must_be_writable("put")
        name = f"{below}{TEMPORARY}{clock.random_token()}"
        at, put_us = Moment.now(), clock.now_us()
        with guarded(self._secrets, "put", name):
            fs, path = self._at(name)
            fs.pipe_file(path, b"")
        offset = self._stamped(name, at, put_us)
        with suppress(StoreError):
            self._remove(name)
        if offset is None:
            raise time_unknown(self.url, "it does not say when an object was written")
        return offset

    def _remove(self, name: str) -> None:
        try:
            with guarded(self._secrets, "delete", name):
                fs, path = self._at(name)
                fs.rm_file(path)
        except ObjectNotFound:
            pass

    def _connect(self) -> tuple[Any, str]:
        """The file system and the path of the root, opened anew in every process."""
        if self._ticket is not None:
            raise missing(self.url)
        if self._opened is None or self._opened[0] != os.getpid():
            with guarded(self._secrets, "open", ""):
                self._opened = (os.getpid(), *open_filesystem(self._address, self._options))
        return self._opened[1], self._opened[2]

    def _at(self, name: str) -> tuple[Any, str]:
        fs, root = self._connect()
        return fs, f"{root}/{name}" if name else root

    def _cat(self, name: str, limits: dict[str, int]) -> bytes:
        check_name(name)
        with guarded(self._secrets, "get", name):
            fs, path = self._at(name)
            return bytes(fs.cat_file(path, **limits))

    def _entries(self, prefix: str) -> builtins.list[tuple[str, Any]]:
        try:
            with guarded(self._secrets, "list", prefix):
                fs, directory = self._at(prefix[:-1])
                return builtins.list(entries(fs.ls(directory, detail=True), directory))
        except ObjectNotFound:
            return []

    def _list_flat(self, prefix: str) -> Iterator[ObjectInfo]:
        fs, directory = self._at(prefix[:-1])
        for name, info in sorted(flat_entries(fs.find(directory, detail=True), directory, prefix), key=itemgetter(0)):
            yield self._info(name, info)

    def _guarded_list(self, found: Iterator[ObjectInfo], prefix: str) -> Iterator[ObjectInfo]:
        try:
            with guarded(self._secrets, "list", prefix):
                yield from found
        except ObjectNotFound:
            return

    def _info(self, name: str, info: Mapping[str, Any]) -> ObjectInfo:
        return ObjectInfo(name, int(info.get("size") or 0), modified_us(info))

    def _must_be_writable(self, doing: str) -> None:
        if not self._writable:
            raise UnsupportedStore(
                f"Cannot {doing} in {self.url}: a put over {self._protocol}:// can be seen half done.",
                next_step="Write to a local path or an object store (s3, gs, abfs); this store can be read.",
            )


def _reopened(url: str, ticket: str) -> FsspecStore:
    return FsspecStore(url, ticket=ticket)
