"""A harvest: the source is walked, merged with the catalog, and what differs is committed in chunks while the walk goes on.

Every chunk is a transaction of its own and says nothing that depends on another, so a harvest that dies between any two calls leaves a
catalog that is right as far as it goes; the next run compares again and commits the rest. A run that finds nothing changed commits nothing.
With workers it is one transaction, see ``rounds``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any
from uuid import UUID

from .. import clock
from ..catalog import DEFAULT_DATABASE, Catalog
from ..errors import AccessDenied, ForeignBranch, InvalidOption
from ..model.names import WriterId, host_writer, names_given, writer_id
from ..query.snapshot import Snapshot
from ..wording import either
from ..write.host_turn import host_turn
from .account import Counts, Harvested, Progress
from .checksums import Checksums
from .commit import Chunks
from .compare import OutOfReach
from .difference import Difference, LiveRows, Portion, refuse_empty
from .failures import Failures
from .mapping import OBJECTS, Bucket, find_bucket
from .open import open_source
from .rounds import Rounds
from .scope import Scope
from .sections import HarvestWorkers
from .source import AnyPath, DividedSource, EntryError, Source, StoreSource, is_divided, is_of_a_store, is_read

CHUNK_EVENTS = 65_536
CHECKPOINT_EVENTS = 1_000_000
"""How many events a run leaves uncovered before it writes a checkpoint of its writer's timeline."""


def default_writer(source: Source) -> WriterId:
    """The writer id of harvests of a source by this machine: the same each time."""
    return host_writer("harvest-", f"-{hashlib.sha256(source.url.encode()).hexdigest()[:12]}")


def harvest(
    catalog: Catalog,
    source: AnyPath | Source,
    *,
    database: str = DEFAULT_DATABASE,
    writer: str | None = None,
    bucket: str | None = None,
    owner: str | UUID | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    dry_run: bool = False,
    allow_empty: bool = False,
    metadata: bool = False,
    tags: bool = False,
    checksum: bool = False,
    source_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    chunk_events: int = CHUNK_EVENTS,
    checkpoint_events: int = CHECKPOINT_EVENTS,
    workers: HarvestWorkers | None = None,
) -> Harvested:
    """Bring the catalog's inventory of ``source`` up to date, and say what changed.

    ``include`` and ``exclude`` are globs (see ``scope``). ``source_options`` say how to reach the source, as storage options do for the
    catalog; without them the environment does. ``metadata`` and ``tags`` ask a bucket for each object's own, a request each. With
    ``checksum`` files are read, each version once, and have their SHA-256 in base64; a dry run reads none.
    ``progress`` is called with what is done so far, about every 16,384 entries; a ``console.progress.progress_line`` shows it.
    ``SourceNotFound`` where there is nothing to list, or, without ``allow_empty``, where nothing is found of all that the catalog has: so
    looks a file system that is not mounted. ``AccessDenied`` where the catalog has versions of a bucket that may not be asked for its
    versioning now. ``InvalidOption`` where the bucket is not this source's. Without a ``writer`` harvests of one source by this machine
    wait for each other, and raise ``WriterBusy`` where that takes too long; ``ForeignBranch`` where another harvest has written as the
    same writer meanwhile.

    With ``workers`` these list and compare sections of the source, and all of it is one commit at the end, without a checkpoint; then
    ``InvalidOption`` for a source that cannot be divided, and ``InvalidRows`` for more than 2^31 changes.
    """
    start, started = clock.monotonic(), clock.now_us()
    _require_bools(dry_run=dry_run, allow_empty=allow_empty, metadata=metadata, tags=tags, checksum=checksum)
    scope = Scope(names_given(include, "globs", "include=['*.jpg']"), names_given(exclude, "globs", "exclude=['*.tmp']"))
    origin = open_source(source, _own_places(catalog), options=source_options, beside=catalog.store, metadata=metadata, tags=tags)
    reads = checksum and not dry_run
    if checksum and not is_read(origin):
        raise _unread(origin)
    name = writer_id(writer) if writer is not None else default_writer(origin)
    with _alone(), ExitStack() as opened:
        # Before the catalog is looked at: what somebody else commits as this writer in between must not be taken for our own.
        if not dry_run:
            opened.enter_context(host_turn(catalog.store, database, named=writer, default=name))
        own = None if dry_run else opened.enter_context(catalog.writer(name, database=database))
        snapshot = catalog.database(database).look()
        target = _target(snapshot, origin, bucket, owner)
        state = _begun(origin, target, database, name, dry_run=dry_run)
        committed: Chunks | Rounds

        def tell(counted: Harvested) -> None:
            nonlocal state
            state = _so_far(counted, committed, start)
            if progress is not None:
                progress(state)

        if workers is None:
            committed = chunks = opened.enter_context(
                Chunks(own, snapshot, target, chunk_events, checkpoint_events, started=started)
            )
            run = _in_chunks(
                state, snapshot, target, scope, origin, chunks, allow_empty=allow_empty, tell=tell if reads else None
            )
        else:
            committed = rounds = Rounds(
                snapshot, target, scope, _divided(origin), workers, own, catalog.database(database), started, reads
            )
            run = rounds.run(state, allow_empty=allow_empty)
        for counted in opened.enter_context(closing(run)):
            tell(counted)
    return _so_far(state, committed, start)


def _require_bools(**options: object) -> None:
    """``InvalidOption`` for what is neither True nor False: any text is true, also "no"."""
    for name, given in options.items():
        if not isinstance(given, bool):
            raise InvalidOption(f"{name} is {given!r}, which is neither True nor False.", next_step="Give one of these two.")


def _begun(source: Source, target: Bucket, database: str, writer: str, *, dry_run: bool) -> Harvested:
    """A harvest that has done nothing so far."""
    return Harvested(source.url, target.name, target.id, target.owner, database, writer, dry_run)


def _so_far(state: Harvested, committed: Chunks | Rounds, start: float) -> Harvested:
    """The counts with what is committed by now, and the time it took."""
    return replace(state, transactions=committed.versions, seconds=clock.monotonic() - start)


def _unread(source: Source) -> InvalidOption:
    return InvalidOption(
        f"{source.url} is not read for checksums.",
        next_step=f"Leave {either('checksum=True', '--checksum')} out; of a bucket of S3 the store's own checksums come with "
        f"{either('metadata=True', '--metadata')}.",
    )


def _divided(source: Source) -> DividedSource:
    if is_divided(source):
        return source
    raise InvalidOption(f"{source.url} cannot be divided among workers.", next_step="Harvest it without them.")


def _target(snapshot: Snapshot, source: Source, bucket: str | None, owner: str | UUID | None) -> Bucket:
    """The bucket that the source is harvested to; see ``find_bucket``."""
    known = _known_of_bucket(source)
    target = find_bucket(snapshot, source, bucket, owner, known)
    if target.versioning and not known and is_of_a_store(source) and source.version_rights:
        raise _unknown_versioning(source, target.versioning)
    return target


@contextmanager
def _alone() -> Iterator[None]:
    """What to do where two harvests have written as one writer."""
    try:
        yield
    except ForeignBranch as error:
        raise ForeignBranch(
            error.message,
            next_step="Let no two harvests of a source run at a time. What both committed is kept and read; harvest on under "
            f"another writer id, with {either('writer=', '--writer')}.",
        ) from error


def _own_places(catalog: Catalog) -> list[str]:
    """Directories of this machine that are the catalog itself."""
    return [] if "://" in catalog.url else [catalog.url]


def _known_of_bucket(source: Source) -> dict[str, Any]:
    """What the source knows of its bucket."""
    versioning = source.versioning() if is_of_a_store(source) else None
    return {} if versioning is None else {"versioning": versioning or None}


def _unknown_versioning(source: StoreSource, versioning: str) -> AccessDenied:
    """The versioning of a bucket that has versions is not known: listed without them, every object would look overwritten, twice."""
    return AccessDenied(
        f"The catalog has {source.url} as a bucket with versions ({versioning}), and its versioning cannot be asked for now: without "
        "it all its objects would be overwritten.",
        next_step=f"Give credentials with {source.version_rights}, with {either('source_options', '--source-option')}.",
    )


def _in_chunks(
    state: Harvested,
    snapshot: Snapshot,
    bucket: Bucket,
    scope: Scope,
    source: Source,
    chunks: Chunks,
    *,
    allow_empty: bool,
    tell: Progress | None,
) -> Generator[Harvested, None, None]:
    """Merge the two sides and hand on what differs; gives the counts after each step. Files are read where they can be ``tell`` told of."""
    failures, out_of_reach, counts = Failures(), OutOfReach(), Counts()

    def report(error: EntryError) -> None:
        failures.add(error)
        out_of_reach.add(error)

    def so_far() -> Counts:
        read = {} if checksums is None else {"hashed": checksums.files, "hashed_bytes": checksums.bytes}
        return replace(counts, errors=len(failures), **read)

    checksums = None
    if tell is not None and is_read(source):
        checksums = Checksums(source, report, tell=lambda: tell(state.with_counts(so_far())))
    entries = source.entries(scope, report)
    first = next(entries, None)
    if first is None and not failures and not allow_empty:
        refuse_empty(snapshot, bucket, scope, source)
    difference = Difference(bucket, scope, source, partial(LiveRows.of, snapshot, bucket), checksums)
    for table, found in difference.changes(Portion(entries if first is None else chain([first], entries))):
        step = out_of_reach.spare(found) if table is OBJECTS else found
        counts = counts.with_step(table, step)
        chunks.add(step, table, so_far())
        yield state.with_counts(so_far())
    chunks.add_failures(*failures.changes(snapshot, source.url, scope), so_far())
    chunks.flush()
    yield replace(state.with_counts(so_far()), failed=failures.first())
