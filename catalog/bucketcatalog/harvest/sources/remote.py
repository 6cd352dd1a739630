"""Files over any protocol that fsspec knows, as a source: walked directory by directory, in byte order of the paths.

Object stores that fsspec reaches (gs, abfs) are walked the same way: a request for each 1,000 names or so of a directory, one directory
after the other. A link is recorded and not followed, where the protocol tells it from a file.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import AccessDenied, BucketCatalogError, InvalidName, NotFound, SourceNotFound
from ...model.tables import TIMESTAMP
from ...store import Store
from ...store.remote_files import RemoteFiles, modified_us
from ...wording import either
from ..ranges import ALL_NAMES, NameRange
from ..scope import Scope
from ..source import BATCH_ROWS, MAX_NAME_BYTES, Changed, EntryError, Report, Reporter, own_source
from .points import points_of
from .stats import checked_names

Info = Mapping[str, Any]
ListedFiles = list[tuple[str, Info]]
_ETAGS = ("ETag", "etag", "e_tag")
_MD5S = ("md5Hash", "content_md5", "md5")
_TYPES = ("contentType", "content_type", "ContentType", "mimetype")
_CLASSES = ("storageClass", "StorageClass")
_MD5_BYTES = 16


class RemoteSource:
    """The files below a url. ``beside`` is the catalog's store: where it lies below the same url, its files are left out."""

    def __init__(self, files: RemoteFiles, *, beside: Store | None = None, batch_rows: int = BATCH_ROWS) -> None:
        self._files = files
        self._batch_rows = batch_rows
        above = files.url.rstrip("/") + "/"
        own = "" if beside is None else beside.url.rstrip("/") + "/"
        if own and above.startswith(own):
            raise own_source(files.url, whole=above == own)
        self._own = own[len(above) :] if own.startswith(above) else ""

    @property
    def authority(self) -> str:
        """Host and port, or the protocol where the url names none."""
        return self._files.authority

    @property
    def url(self) -> str:
        """The url, without passwords and query."""
        return self._files.url

    @property
    def name(self) -> str:
        """What stands behind ``://``, without a user; ``InvalidName`` where it cannot be the name of a bucket."""
        path = self._files.path
        host, slash, rest = path.partition("/")
        name = f"{host.rpartition('@')[2]}{slash}{rest}" or self._files.protocol
        if len(name.encode(errors="replace")) > MAX_NAME_BYTES:
            raise InvalidName(
                f"{name!r} cannot be the name of a bucket.", next_step=f"Name the bucket with {either('bucket=', '--bucket')}."
            )
        return name

    @property
    def compared(self) -> tuple[str, ...]:
        """What stores tell and may change behind one etag."""
        return ("content_length", "modified", "content_type", "storage_class")

    def versioning(self) -> str | None:
        """None: fsspec has no call that tells."""
        return None

    @property
    def version_rights(self) -> str:
        """Empty: there is nothing to ask."""
        return ""

    def look(self, entries: pa.RecordBatch, known: pa.RecordBatch | None) -> pa.RecordBatch:
        """The entries: there is nothing else to ask for."""
        return entries

    @property
    def readers(self) -> int:
        """One where the file system does one thing at a time."""
        return self._files.readers

    def pieces(self, entry: Mapping[str, Any]) -> Iterator[bytes]:
        """See ``ReadSource``. A request more tells whether it still is what was listed."""
        yield from self._files.pieces(entry["name"])
        now = self._files.info(entry["name"])
        said = {"content_length": _size(now), "modified": modified_us(now) or None, "etag": _etag(now)}
        if any(None not in (value, entry[name]) and value != entry[name] for name, value in said.items()):
            raise Changed(entry["name"])

    def divide(self, within: NameRange, parts: int) -> list[bytes]:
        """See ``DividedSource``. At directories alone: who is given a part of one has to list, and maybe to ask, for all of it."""
        return points_of(self._directories_in, within, parts)

    def _directories_in(self, directory: bytes) -> list[bytes]:
        try:
            return [_raw(name) for name, _ in self._files.below(directory.decode(errors="surrogateescape")) if name.endswith("/")]
        except (NotFound, AccessDenied):
            return []  # whoever is given that part finds out

    def entries(self, scope: Scope, report: Report, within: NameRange = ALL_NAMES) -> Iterator[pa.RecordBatch]:
        """See ``Source``. Memory grows with the largest directories on one path."""
        said = Reporter(scope, report)
        found: ListedFiles = []
        for run in self._walk(scope, report, within):
            found += run
            if len(found) >= self._batch_rows:
                yield from _batch(found, scope, said)
                found = []
        if found:
            yield from _batch(found, scope, said)

    def _walk(self, scope: Scope, report: Report, within: NameRange) -> Iterator[ListedFiles]:
        """Runs of files, in byte order of names: a directory sorts with the ``/`` that its names have."""
        stack = [iter(_sorted(self._root(scope, report, within)))]
        while stack:
            run: ListedFiles = []
            for name, info in stack[-1]:
                if not name.endswith("/"):
                    run.append((name, info))
                    if len(run) < self._batch_rows:
                        continue
                    break
                if name != self._own and scope.enters(_shown(name)):
                    stack.append(iter(_sorted(self._listed(name, scope, report, within))))
                    break
            else:
                stack.pop()
            if run:
                yield run

    def _root(self, scope: Scope, report: Report, within: NameRange) -> ListedFiles:
        try:
            found = list(self._files.below(""))
            if found or self._files.is_directory():
                return _readable(_inside(found, within), scope, report)
        except NotFound:
            pass
        raise SourceNotFound(f"{self.url} is not a directory that can be listed.", next_step="Check the url of the source.")

    def _listed(self, name: str, scope: Scope, report: Report, within: NameRange) -> ListedFiles:
        try:
            return _readable(_inside(self._files.below(name), within), scope, report)
        except NotFound:
            return []  # it has vanished since its parent was listed
        except BucketCatalogError as error:
            if type(error).code != "ACCESS_DENIED":
                raise  # what was not listed must not look deleted
            if scope.covers(_shown(name)):
                report(EntryError(_raw(name), error.code, "the directory cannot be listed"))
            return []


def _inside(found: Iterable[tuple[str, Info | None]], within: NameRange) -> list[tuple[str, Info | None]]:
    """What is in a range of names, and the directories that may have something in it."""
    if within.everything:
        return list(found)
    return [one for one in found if (within.enters if one[0].endswith("/") else within.holds)(_raw(one[0]))]


def _readable(found: Sequence[tuple[str, Info | None]], scope: Scope, report: Report) -> ListedFiles:
    """The files without those that may not be asked for, which are reported: what the catalog has of them stays."""
    for name, info in found:
        if info is None and scope.covers(_shown(name)):
            report(EntryError(_raw(name), AccessDenied.code, "the file cannot be read"))
    return [(name, info) for name, info in found if info is not None]


def _raw(name: str) -> bytes:
    return name.encode(errors="surrogateescape")


def _shown(name: str) -> str:
    return name.encode(errors="backslashreplace").decode()


def _sorted(found: ListedFiles) -> ListedFiles:
    return sorted(found, key=lambda item: _raw(item[0]))


def _batch(found: Sequence[tuple[str, Info]], scope: Scope, report: Reporter) -> Iterator[pa.RecordBatch]:
    kept, names = checked_names(pa.array([_raw(name) for name, _ in found], pa.binary()), scope, report)
    infos = [info for _, info in found] if kept is None else [found[at][1] for at in kept]
    if not infos:
        return
    lengths = pa.array([_size(info) for info in infos], pa.int64())
    times = pa.array([modified_us(info) or None for info in infos], pa.int64())
    etags = pa.array([_etag(info) for info in infos], pa.string())
    parts = (lengths.cast(pa.string()), pc.multiply(times, 1_000).cast(pa.string()))
    plain = pc.binary_join_element_wise(*(pc.fill_null(part, "") for part in parts), " ")
    yield pa.record_batch(
        {
            "name": names,
            "identity": pc.coalesce(etags, plain).cast(pa.binary()),
            "content_length": lengths,
            "modified": times.cast(TIMESTAMP),
            "content_type": pa.array([_text(info, _TYPES) for info in infos], pa.string()),
            "content_md5": pa.array([_md5(info) for info in infos], pa.binary()),
            "etag": etags,
            "storage_class": pa.array([_text(info, _CLASSES) for info in infos], pa.string()),
            "file_type": pa.array([_file_type(info) for info in infos], pa.string()),
            "link_target": pa.array([_text(info, ("destination",)) for info in infos], pa.string()),
        }
    )


def _size(info: Info) -> int | None:
    size = info.get("size")
    return int(size) if size is not None else None


def _text(info: Info, keys: Sequence[str]) -> str | None:
    found = next((info[key] for key in keys if isinstance(info.get(key), str) and info[key]), None)
    return None if found is None else str(found).encode(errors="replace").decode()


def _etag(info: Info) -> str | None:
    tag = _text(info, _ETAGS)
    return tag.removeprefix("W/").strip('"') if tag else None


def _md5(info: Info) -> bytes | None:
    """Stores tell it in base64, or as bytes."""
    for key in _MD5S:
        value = info.get(key)
        try:
            found = b64decode(value, validate=True) if isinstance(value, str) else bytes(value or b"")
        except (NoBase64, ValueError, TypeError):
            continue
        if len(found) == _MD5_BYTES:
            return found
    return None


def _file_type(info: Info) -> str | None:
    kind = info.get("type")
    return "symlink" if kind == "link" or info.get("islink") else None if kind == "file" else "other"
