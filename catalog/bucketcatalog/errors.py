"""Every error that the package raises on purpose, in one tree.

::

    BucketCatalogError                 code, message, next step; picklable
    ├── UsageError                     the caller asked for something that cannot be
    │   ├── InvalidName                writer, database, tag, bucket or object name
    │   ├── InvalidOption              an option's name or value
    │   ├── InvalidRows                rows that do not fit their table
    │   ├── InvalidTime                a timestamp that cannot be read or lies in the future
    │   ├── InvalidVersion             a version string that cannot be read
    │   ├── UnknownTable               no table of that name in the catalog
    │   ├── IncompatibleTable          a definition that contradicts the catalog's own
    │   └── ClosedWriter               a writer or transaction used after its end
    ├── BrokenSystem                   a system that cannot be used, or whose code fails
    ├── NotFound                       what was named is not there
    │   ├── CatalogNotFound            no catalog at that place
    │   ├── DatabaseNotFound           no such database, or several to choose from
    │   ├── SourceNotFound             a source to harvest that is not there
    │   ├── StoreNotFound              no such bucket to keep a catalog in
    │   ├── HistoryPruned              a version or time from before the horizon
    │   └── ObjectNotFound             an object of the store
    ├── StoreError                     the store refused or failed
    │   ├── AccessDenied
    │   ├── StoreUnavailable
    │   │   └── StoreUnreachable       the same request may succeed in a moment
    │   ├── OutcomeUnknown             a put may or may not have landed
    │   └── UnsupportedStore           a store that cannot give what the call needs
    ├── CommitError                    a transaction that was not published
    │   ├── ClockSkew                  the clock is too far from the store's
    │   ├── ForeignBranch              somebody else writes under this writer's id
    │   ├── StaleRead                  what it had read is older than a commit may count on
    │   ├── StaleBatch                 a batch of a stream of which a later one was committed
    │   ├── WriterRetired              the writer's timeline was sealed
    │   ├── WriterBusy                 this machine's writer is open in another of its processes
    │   └── CommitUnknown              the outcome is not known; reopening resolves it
    ├── CorruptionError                a file that is not what it claims to be
    │   ├── TruncatedObject
    │   └── MissingObject              a file that another one names is gone
    ├── DataCollected                  data that may be deleted was to be used again
    ├── CheckpointTooLate              a checkpoint that took too long to be published
    ├── TagExists                      a tag's name that another cut has or had
    ├── TargetNotEmpty                 a place to clone or export to that has something else
    ├── ParentEnded                    rows that cannot be restored before the rows that own them
    ├── ForkDetected                   a forked timeline, where the caller was strict
    ├── SetAsideError                  what was asked for needs a file that was set aside
    └── UnsupportedFormat              a format version or required feature that is too new

An error's text is one line: what is wrong with which file, row or option, then the next step. `code` is stable across releases.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from .wording import either, how_to_repair, how_to_set_aside, how_to_verify


class BucketCatalogError(Exception):
    """The base of all errors of this package.

    ``code`` names the kind of error for programs, ``message`` says what is wrong with what, ``next_step`` what to do about it.
    """

    code: ClassVar[str] = "BUCKETCATALOG"

    def __init__(self, message: str, *, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        text = f"[{self.code}] {self.message}"
        return f"{text} Next: {self.next_step}" if self.next_step else text

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), vars(self))


def _rebuild(kind: type[BucketCatalogError], state: dict[str, Any]) -> BucketCatalogError:
    error = kind(state["message"])
    vars(error).update(state)
    return error


class UsageError(BucketCatalogError):
    """The caller asked for something that cannot be."""

    code = "USAGE"


class InvalidName(UsageError):
    """A name outside the limits of its kind."""

    code = "INVALID_NAME"


class InvalidOption(UsageError):
    """An unknown option, or a value that the option does not take."""

    code = "INVALID_OPTION"


class InvalidRows(UsageError):
    """Rows that do not fit the table they were given for."""

    code = "INVALID_ROWS"


class InvalidTime(UsageError):
    """A time that cannot be read, or that lies in the future."""

    code = "INVALID_TIME"


class InvalidVersion(UsageError):
    """A version string that cannot be read or names nothing here."""

    code = "INVALID_VERSION"


class UnknownTable(UsageError):
    """No table of that name in the catalog."""

    code = "UNKNOWN_TABLE"


class IncompatibleTable(UsageError):
    """A table definition that contradicts what the catalog holds."""

    code = "INCOMPATIBLE_TABLE"


class ClosedWriter(UsageError):
    """A writer or transaction was used after its end."""

    code = "CLOSED_WRITER"


class BrokenSystem(BucketCatalogError):
    """A system that cannot be imported, declares what cannot be or is not its own, or whose code fails; its cause is what that raised."""

    code = "BROKEN_SYSTEM"


class NotFound(BucketCatalogError):
    """What was named is not there. ``instead`` are some names of what is, None where none of these is meant."""

    code = "NOT_FOUND"
    instead: tuple[Any, ...] | None = None


class CatalogNotFound(NotFound):
    """No catalog at the place that was named."""

    code = "CATALOG_NOT_FOUND"


class DatabaseNotFound(NotFound):
    """No such database, or several and none was named."""

    code = "DATABASE_NOT_FOUND"


class SourceNotFound(NotFound):
    """The source to harvest is not there, or has nothing where the catalog has entries of it."""

    code = "SOURCE_NOT_FOUND"


class StoreNotFound(NotFound):
    """The store itself is not there: no bucket of that name, or no folder of data."""

    code = "STORE_NOT_FOUND"


class HistoryPruned(NotFound):
    """A version or a time that lies before the horizon: what it needs was pruned, or may be from now on."""

    code = "PRUNED"


class ObjectNotFound(NotFound):
    """The store holds no object of that name."""

    code = "OBJECT_NOT_FOUND"


class StoreError(BucketCatalogError):
    """The object store refused or failed. Where what lies under one name is all that is in the way ``in_the_way`` is that name.

    Then all else can be read and listed: what sorts before it has been listed, and a listing after it goes on. A directory's ends in ``/``.
    """

    code = "STORE"
    in_the_way = ""


class AccessDenied(StoreError):
    """The store does not allow the call."""

    code = "ACCESS_DENIED"


class StoreUnavailable(StoreError):
    """The store did not answer, and nothing was changed."""

    code = "STORE_UNAVAILABLE"


class StoreUnreachable(StoreUnavailable):
    """The store could not be reached, or asked for fewer requests; nothing was changed and the same request may succeed soon."""

    code = "STORE_UNREACHABLE"


class OutcomeUnknown(StoreError):
    """A put may or may not have landed; the same bytes may be put again."""

    code = "OUTCOME_UNKNOWN"


class UnsupportedStore(StoreError):
    """A store that cannot give the guarantee that the call needs."""

    code = "UNSUPPORTED_STORE"


class CommitError(BucketCatalogError):
    """A transaction that was not published."""

    code = "COMMIT"


class ClockSkew(CommitError):
    """This machine's clock is too far from the store's."""

    code = "CLOCK_SKEW"


class ForeignBranch(CommitError):
    """Another process writes under this writer's id."""

    code = "FOREIGN_BRANCH"


class WriterRetired(CommitError):
    """The writer's timeline was sealed: readers do not look for what it commits."""

    code = "WRITER_RETIRED"


class StaleRead(CommitError):
    """What the transaction had read, or had begun to write, is too old: it may be gone, or what has happened since contradict it."""

    code = "STALE_READ"


class StaleBatch(CommitError):
    """A batch of a stream after a later one of the same application was committed."""

    code = "STALE_BATCH"


class WriterBusy(CommitError):
    """Another process of this machine has its default writer open for longer than one waits, or this thread has; nothing was written."""

    code = "WRITER_BUSY"


class CommitUnknown(CommitError):
    """Whether the transaction was published is not known; reopening the writer resolves it."""

    code = "COMMIT_UNKNOWN"


def can_be_set_aside(file: str) -> bool:
    """Whether a file's name is one of a transaction that ``repair`` sets aside: a maintainer's has nothing that stands in for it."""
    return file.endswith(".txn") and not file.startswith("maintainer-")


def next_step_for(file: str) -> str:
    """What to do about a file that is gone or is not what it claims to be, by what its name says that it is."""
    restore = "Restore the file from a copy of the store"
    if can_be_set_aside(file):
        writer = file.partition("/")[0]
        return (
            f"{restore}; else {how_to_verify()} says what is lost with it, and {how_to_set_aside(file)} goes on without it, or with "
            f"{either(f'set_aside=[{writer!r}]', f'--set-aside {writer}')} without all that is bad of its writer."
        )
    if file.endswith(".ckpt"):
        return (
            f"{restore}; else {how_to_repair()} says whether all that it held is there without it, and "
            f"{either('catalog.repair(dry_run=False)', 'bucketcatalog repair CATALOG --yes')} goes on so."
        )
    if file.endswith(".parquet"):
        return (
            f"{restore}; else {how_to_verify()} says who refers to it and what is lost with it, and "
            f"{how_to_repair()} what can be done without that."
        )
    return f"{restore}; else {how_to_verify()} says what is lost with it, and {how_to_repair()} what can be done."


def next_step_between(file: str, follower: str) -> str:
    """What to do about two transactions of one timeline that do not fit each other, where nobody can tell which is not what was written."""
    return (
        "Restore the one that is not as it was written from a copy of the store; else go on without either: "
        f"{how_to_set_aside(file)}, or {how_to_set_aside(follower)}."
    )


_NAMED = re.compile(r"'?(?P<file>[^/' ]+/[^/' ]+/(?:transactions|newest|segments)/[^' ]*)")
"""What a message begins with that is about a file of a catalog, whether or not its name is quoted."""


def _next_step_of(message: str) -> str:
    """What to do about the file with whose name a message begins; where it begins otherwise, how to find out which it is."""
    named = _NAMED.match(message)
    if named is not None:
        return next_step_for(named["file"])
    return f"{how_to_verify()} says which file is damaged and what is lost with it, and {how_to_repair()} what can be done."


class CorruptionError(BucketCatalogError):
    """A file that is not what it claims to be. The message begins with its name, by which the next step is, and says what it holds."""

    code = "CORRUPT"

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message, next_step=_next_step_of(message) if next_step is None else next_step)


class TruncatedObject(CorruptionError):
    """A file that is shorter than what is read from it."""

    code = "TRUNCATED"


class MissingObject(CorruptionError):
    """A file that another file names is gone; ``name`` is that file's, where it is known."""

    code = "MISSING"
    name = ""


class DataCollected(BucketCatalogError):
    """The data of a version that was to be used again may be deleted, or is."""

    code = "DATA_COLLECTED"


class CheckpointTooLate(BucketCatalogError):
    """A checkpoint took so long that what it refers to may have been pruned, or a horizon lets it go by now: it was not published."""

    code = "CHECKPOINT_TOO_LATE"


class TagExists(BucketCatalogError):
    """A tag of that name is given to another cut, or was before it was dropped."""

    code = "TAG_EXISTS"


class TargetNotEmpty(BucketCatalogError):
    """A catalog is to be cloned to a place where the database has something else already, or partitions are to be written to one."""

    code = "TARGET_NOT_EMPTY"


class ParentEnded(BucketCatalogError):
    """Rows that are to be put again belong to rows of another table that have ended."""

    code = "PARENT_ENDED"


class ForkDetected(BucketCatalogError):
    """A timeline has more than one branch, and the caller asked to be strict, or to have them joined, which cannot be yet."""

    code = "FORK"


class SetAsideError(BucketCatalogError):
    """What was asked for would leave out, unseen, what a file held that a maintainer has set aside; or it was made before that."""

    code = "SET_ASIDE"


class UnsupportedFormat(BucketCatalogError):
    """A format version or a required feature that this release does not know."""

    code = "UNSUPPORTED_FORMAT"


class CatalogWarning(UserWarning):
    """Something about a catalog that does not stop a reader but that somebody should know."""


UNREADABLE = (CorruptionError, UnsupportedFormat)
"""What is raised for a file that is gone, is not what was written, or needs a newer release: what reading past damage goes on after."""
