"""Inventories of something that exists, kept up to date in the core tables.

It stands on the catalog as any user does: ``open`` finds a source, ``compare`` merges its entries with what the catalog has, ``commit``
commits the difference.

::

    scope         globs, matched alike on both sides
    ranges        ranges of names, into which a source is divided
    source        the seam to what is inventoried, and what counts as an error there
    mapping       entries as rows and ids
    compare       two ordered streams, merged into what has to change
    checksums     what files hold, as checksums that are made once of each version
    difference    the changes of each table from one pass over the source
    failures      keeps account of what could not be catalogued
    account       counts of what was seen and what became of it
    commit        commits the difference in chunks, and says what was done
    sections      a range of names, compared and written by whoever is given it
    rounds        a harvest by workers: divides the source until it is done, and commits once
    open          the source that a URL names
    run           a harvest from start to end
    sources/      a package: what can be inventoried, each behind the same seam
"""

from .account import Harvested, Progress
from .failures import Failed
from .open import open_source
from .run import default_writer, harvest
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
