"""A bucket as a source: everything that S3 lists, every version where it keeps versions, and more on request.

Listing runs ahead of the merge in a few threads, each on a part of the keys; conversion to Arrow happens there too. What is held at a
time are at most ``_PAGES_AHEAD`` pages a thread, one batch, and the versions of one key.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import AccessDenied, SourceNotFound, StoreNotFound, UnsupportedStore
from ...model.keys import lower_bound
from ...parallel import ahead
from ...store import Store
from ...store.inventory import Inventory, ListedPage, Span
from ...wording import either
from ..mapping import OBJECT_VERSIONS, names_of
from ..ranges import ALL_NAMES, NameRange
from ..scope import Scope
from ..source import BATCH_ROWS, Report, Reporter, own_source
from .details import Details
from .s3_pages import ONLY_VERSIONS, checked_order, combined, page_batch, whole_names, with_ordinals
from .s3_parts import common, dividing, spans
from .stats import checked_names

LISTED = ("content_length", "modified", "etag", "storage_class", "checksum_algorithm", "parts", "version_id")
_AWS = "s3.amazonaws.com"
_DIRECTORY_BUCKET = "--x-s3"
_THREADS = 4
_PAGES_AHEAD = 64
_PAGES_FIRST = 8
_FULL_PAGE = 1_000


class S3Source:
    """The objects below ``s3://BUCKET/PATH``, or all versions of them where the bucket has versions.

    ``metadata`` and ``tags`` ask for each object's own. ``beside`` is the catalog's store, whose objects are left out.
    """

    def __init__(
        self,
        inventory: Inventory,
        *,
        metadata: bool = False,
        tags: bool = False,
        beside: Store | None = None,
        threads: int = _THREADS,
    ) -> None:
        self._inventory = inventory
        self._asks = metadata or tags
        self._details = Details(inventory, metadata=metadata, tags=tags)
        self._own = None if beside is None else inventory.own(beside)
        self._threads = min(threads, inventory.concurrency)
        self._versioning: str | None = None
        self._asked = False
        if inventory.bucket.endswith(_DIRECTORY_BUCKET):
            raise UnsupportedStore(
                f"{self.url} is a directory bucket, which lists its keys out of order.",
                next_step="Harvest a general purpose bucket.",
            )
        if self._own is not None and inventory.folder.startswith(self._own):
            raise own_source(self.url, whole=inventory.folder == self._own)

    @property
    def authority(self) -> str:
        """Host and port of the server; for AWS ``s3.amazonaws.com``."""
        return self._inventory.authority

    @property
    def url(self) -> str:
        """``s3://BUCKET/PATH``, with ``?endpoint=HOST:PORT`` for any server but AWS."""
        server = "" if self.authority == _AWS else f"?endpoint={self.authority}"
        return f"s3://{self.name}{server}"

    @property
    def name(self) -> str:
        """The bucket's name, followed by the path if there is one."""
        return f"{self._inventory.bucket}/{self._inventory.folder}".rstrip("/")

    @property
    def compared(self) -> tuple[str, ...]:
        """All that a listing shows."""
        return (*LISTED, *ONLY_VERSIONS) if self.versioning() else LISTED

    def versioning(self) -> str | None:
        """See ``StoreSource``. ``SourceNotFound`` where there is no such bucket."""
        if not self._asked:
            with self._explained():
                self._versioning = self._inventory.versioning()
            self._asked = True
        return self._versioning

    @property
    def version_rights(self) -> str:
        """As policies call them."""
        return "the right s3:GetBucketVersioning, and s3:ListBucketVersions"

    def look(self, entries: pa.RecordBatch, known: pa.RecordBatch | None) -> pa.RecordBatch:
        """See ``StoreSource``. HeadObject and GetObjectTagging, where they are asked for."""
        with self._explained():
            return self._details(entries, known)

    def divide(self, within: NameRange, parts: int) -> list[bytes]:
        """See ``DividedSource``. A few dozen requests."""
        with self._explained():
            points = dividing(self._inventory, _span(self._inventory, within), parts, threads=self._threads)
        start = len(self._inventory.folder)
        return [point[start:].encode() for point in points]

    def entries(self, scope: Scope, report: Report, within: NameRange = ALL_NAMES) -> Iterator[pa.RecordBatch]:
        """See ``Source`` and ``StoreSource``.

        ``UnsupportedStore`` where keys come out of order: what lies before that point has been given out by then.
        """
        versioned = bool(self.versioning())
        pages = self._inventory.versions if versioned else self._inventory.objects
        # Closed at once when the reader goes away: threads that list ahead would wait for it.
        with self._explained(), closing(self._listed(pages, within)) as listed:
            after = None if within.everything else _span(self._inventory, within).after.encode()
            found = checked_order(listed, self.url, repeats=versioned, after=after)
            if versioned:
                found = map(with_ordinals, whole_names(found))
            for batch in combined(found, _FULL_PAGE if self._asks else BATCH_ROWS):
                entries = self._entries(batch, scope, Reporter(scope, report))
                self._details.forget()
                if len(entries):
                    yield _by_version(entries) if versioned else entries.drop_columns(["is_latest", "is_delete_marker"])

    def _listed(self, pages: Callable[[Span], Iterator[ListedPage]], within: NameRange) -> Generator[pa.RecordBatch, None, None]:
        """Everything below the folder: a few pages of one listing, and of what they have not shown several at once.

        A part of it is one listing: whoever divides the source has others list the rest.
        """
        everything = _span(self._inventory, within)
        if not within.everything:
            yield from ahead([partial(_batches, pages, everything)], threads=1, depth=_PAGES_AHEAD)
            return
        for number, page in enumerate(pages(everything), 1):
            batch = page_batch(page, everything)
            last, after = _before_last(batch.column("key")) if number >= _PAGES_FIRST and len(batch) == _FULL_PAGE else (0, None)
            if after is None:
                yield batch
                continue
            yield batch.slice(0, last)
            parts = spans(self._inventory, self._threads, after=after, pages=number)
            yield from ahead([partial(_batches, pages, part) for part in parts], threads=self._threads, depth=_PAGES_AHEAD)
            return

    def _entries(self, batch: pa.RecordBatch, scope: Scope, report: Reporter) -> pa.RecordBatch:
        """The entries that are in scope and can be named, with names below the folder and identities."""
        if self._own is not None and self._own.startswith(self._inventory.folder):
            batch = batch.filter(pc.invert(pc.starts_with(batch.column("key"), pattern=self._own)))
        start = len(self._inventory.folder.encode())
        kept, names = checked_names(
            pa.array([key[start:] for key in batch.column("key").to_pylist()], pa.binary()), scope, report
        )
        batch = batch if kept is None else batch.take(pa.array(kept, pa.int64()))
        columns = {name: batch.column(name) for name in batch.schema.names if name != "key"}
        return pa.record_batch({"name": names, "identity": _identities(batch), **columns})

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors that say what a source needs; what the store says of roles is meant for catalogs."""
        try:
            yield
        except StoreNotFound as error:
            raise SourceNotFound(error.message, next_step=error.next_step) from error
        except AccessDenied as error:
            raise AccessDenied(
                error.message,
                next_step=f"Check the credentials of the source ({either('source_options', '--source-option')} or the environment), and "
                "that they may list the bucket (s3:ListBucket, s3:ListBucketVersions) and, where asked for, read objects and tags "
                "(s3:GetObject, s3:GetObjectTagging; where the bucket has versions s3:GetObjectVersion, s3:GetObjectVersionTagging).",
            ) from error


def _span(inventory: Inventory, within: NameRange) -> Span:
    """The keys of a range of names; those below the folder, of which its own marker is none."""
    folder = inventory.folder
    after, upto = (folder + name.decode(errors="ignore") for name in (within.after, within.upto or b""))
    return Span(folder, after) if within.upto is None else Span(common(after, upto), after, upto)


def _batches(pages: Callable[[Span], Iterable[ListedPage]], span: Span) -> Iterator[pa.RecordBatch]:
    return (page_batch(page, span) for page in pages(span))


def _before_last(keys: pa.Array) -> tuple[int, str | None]:
    """Where the last key begins, which may have versions on the next page, and the key before it; None where there is none as text."""
    last = lower_bound(keys, keys[-1].as_py())
    try:
        return last, keys[last - 1].as_py().decode() if last else None
    except UnicodeDecodeError:
        return 0, None


def _by_version(entries: pa.RecordBatch) -> pa.RecordBatch:
    return entries.take(pc.sort_indices(names_of(OBJECT_VERSIONS, entries)))


def _identities(batch: pa.RecordBatch) -> pa.Array:
    """A version id; of what has none the etag; without one size and time. Null versions are replaced in place, so they need all three."""
    version, etag = batch.column("version_id"), batch.column("etag")
    size = batch.column("content_length").cast(pa.string())
    time = pc.multiply(batch.column("modified").cast(pa.int64()), 1_000).cast(pa.string())
    plain = pc.coalesce(etag, pc.binary_join_element_wise(size, time, " "))
    null = pc.binary_join_element_wise("null", pc.fill_null(etag, ""), pc.fill_null(size, ""), time, " ")
    return pc.coalesce(pc.if_else(pc.equal(version, "null"), null, version), plain).cast(pa.binary())
