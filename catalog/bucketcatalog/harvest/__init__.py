"""Inventories of something that exists, kept up to date in the core tables.

It stands on the catalog as any user does: ``open`` finds a source, ``compare`` merges its entries with what the catalog has, ``commit``
commits the difference.

::

    scope         globs, matched alike on both sides
    source        the seam to what is inventoried, and what counts as an error there
    mapping       entries as rows and ids
    compare       two ordered streams, merged into what has to change
    difference    the changes of each table from one pass over the source
    commit        commits the difference in chunks, and keeps account of what could not be catalogued
    open          the source that a URL names
    run           a harvest from start to end, and its counts
    sources/      a package: what can be inventoried, each behind the same seam
"""

from .commit import Failed
from .open import open_source
from .run import Harvested, Progress, default_writer, harvest
from .source import BATCH_ROWS, ENTRY_SCHEMA, EntryError, Source

__all__ = [
    "BATCH_ROWS",
    "ENTRY_SCHEMA",
    "EntryError",
    "Failed",
    "Harvested",
    "Progress",
    "Source",
    "default_writer",
    "harvest",
    "open_source",
]
