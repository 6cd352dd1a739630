"""bucketcatalog: the inventory, history and catalog of any object store, with nothing to run beside the store itself.

``Catalog`` opens a catalog; its ``writer`` commits transactions, its ``snapshot`` reads one cut of a database, now or at any past moment.

A row's way, package by package (docs/architecture.md):

::

    model/ store/     values that everybody speaks of; disks and networks behind one seam
    format/ log/      bytes of files, and which files make a cut
    state/            what the rows are there
    checkpoint/       that state written down
    query/ write/     answers; rows in, one PUT out
    maintain/         what only a maintainer does
    registry/         the systems that are there
    catalog/          the way in; ``federation`` is several of them, ``compaction`` one that goes on by itself
    questions/        what people ask of an inventory, each in one call
    harvest/          inventories of something that exists
    exports/          what a catalog knows in the forms of others
    console/ cli/     how a command line runs, and this package's own

``wording``, ``errors``, ``clock``, ``limits``, ``cache`` and ``parallel`` are used everywhere, ``v1`` is generated.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import (
    AccessDenied,
    BrokenSystem,
    BucketCatalogError,
    CatalogNotFound,
    CatalogWarning,
    CheckpointTooLate,
    ClockSkew,
    ClosedWriter,
    CommitError,
    CommitUnknown,
    CorruptionError,
    DatabaseNotFound,
    DataCollected,
    ForeignBranch,
    ForkDetected,
    HistoryPruned,
    IncompatibleTable,
    InvalidName,
    InvalidOption,
    InvalidRows,
    InvalidTime,
    InvalidVersion,
    MissingObject,
    NotFound,
    ObjectNotFound,
    OutcomeUnknown,
    ParentEnded,
    SetAsideError,
    SourceNotFound,
    StaleBatch,
    StaleRead,
    StoreError,
    StoreNotFound,
    StoreUnavailable,
    StoreUnreachable,
    TagExists,
    TargetNotEmpty,
    TruncatedObject,
    UnknownTable,
    UnsupportedFormat,
    UnsupportedStore,
    UsageError,
    WriterBusy,
    WriterRetired,
)

if TYPE_CHECKING:
    from .catalog import Catalog
    from .query.changes import Changes
    from .query.difference import Diff
    from .query.scan import Scan
    from .query.snapshot import Snapshot
    from .where.conditions import between, prefix
    from .write.transaction import WriteTransaction as Transaction
    from .write.writer import Writer

__all__ = [
    "AccessDenied",
    "BrokenSystem",
    "BucketCatalogError",
    "Catalog",
    "CatalogNotFound",
    "CatalogWarning",
    "Changes",
    "CheckpointTooLate",
    "ClockSkew",
    "ClosedWriter",
    "CommitError",
    "CommitUnknown",
    "CorruptionError",
    "DataCollected",
    "DatabaseNotFound",
    "Diff",
    "ForeignBranch",
    "ForkDetected",
    "HistoryPruned",
    "IncompatibleTable",
    "InvalidName",
    "InvalidOption",
    "InvalidRows",
    "InvalidTime",
    "InvalidVersion",
    "MissingObject",
    "NotFound",
    "ObjectNotFound",
    "OutcomeUnknown",
    "ParentEnded",
    "Scan",
    "SetAsideError",
    "Snapshot",
    "SourceNotFound",
    "StaleBatch",
    "StaleRead",
    "StoreError",
    "StoreNotFound",
    "StoreUnavailable",
    "StoreUnreachable",
    "TagExists",
    "TargetNotEmpty",
    "Transaction",
    "TruncatedObject",
    "UnknownTable",
    "UnsupportedFormat",
    "UnsupportedStore",
    "UsageError",
    "Writer",
    "WriterBusy",
    "WriterRetired",
    "between",
    "prefix",
]

_WITH_ARROW = {
    "Catalog": (".catalog", "Catalog"),
    "Changes": (".query.changes", "Changes"),
    "Diff": (".query.difference", "Diff"),
    "Scan": (".query.scan", "Scan"),
    "Snapshot": (".query.snapshot", "Snapshot"),
    "Transaction": (".write.transaction", "WriteTransaction"),
    "Writer": (".write.writer", "Writer"),
    "between": (".where.conditions", "between"),
    "prefix": (".where.conditions", "prefix"),
}
"""What stands on Arrow, where, and what it is called there: it is imported when it is first asked for, since every module of the package
imports the package."""


def __getattr__(name: str) -> Any:
    if name not in _WITH_ARROW:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, there = _WITH_ARROW[name]
    found = globals()[name] = getattr(import_module(module, __name__), there)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
