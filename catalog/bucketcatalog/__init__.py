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
    catalog           the way in; ``federation`` is several of them, ``compaction`` one that goes on by itself
    harvest/          inventories of something that exists
    console/ cli/     how a command line runs, and this package's own

``errors``, ``clock``, ``limits``, ``cache`` and ``parallel`` are used everywhere, ``v1`` is generated.
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
    from .state.conditions import between, prefix

__all__ = [
    "AccessDenied",
    "BrokenSystem",
    "BucketCatalogError",
    "Catalog",
    "CatalogNotFound",
    "CatalogWarning",
    "CheckpointTooLate",
    "ClockSkew",
    "ClosedWriter",
    "CommitError",
    "CommitUnknown",
    "CorruptionError",
    "DataCollected",
    "DatabaseNotFound",
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
    "SetAsideError",
    "SourceNotFound",
    "StaleBatch",
    "StaleRead",
    "StoreError",
    "StoreNotFound",
    "StoreUnavailable",
    "StoreUnreachable",
    "TagExists",
    "TargetNotEmpty",
    "TruncatedObject",
    "UnknownTable",
    "UnsupportedFormat",
    "UnsupportedStore",
    "UsageError",
    "WriterBusy",
    "WriterRetired",
    "between",
    "prefix",
]

_WITH_ARROW = {"Catalog": ".catalog", "between": ".state.conditions", "prefix": ".state.conditions"}
"""What stands on Arrow, and where: it is imported when it is first asked for, since every module of the package imports the package."""


def __getattr__(name: str) -> Any:
    if name not in _WITH_ARROW:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_WITH_ARROW[name], __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
