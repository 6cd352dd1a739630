"""Harvests: the inventory of something that exists, such as a directory tree, kept up to date in a catalog.

In the data's way: ``open`` finds the source; ``source`` is the seam, ``local`` a directory behind it, which gives its entries in order of
names; ``mapping`` makes rows and ids of them; ``compare`` merges them with what the catalog has; ``run`` commits the difference. ``scope``
says what a harvest is about, ``failures`` keeps account of what cannot be catalogued.
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
