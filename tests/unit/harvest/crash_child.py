"""Harvests in a process of its own, telling of each step on standard output, so that a test can kill it there.

Usage: crash_child.py SOURCE CATALOG. Chunks and batches are small, so that there are many steps.
"""

from __future__ import annotations

import sys

from bucketcatalog import Catalog
from bucketcatalog.harvest import harvest
from bucketcatalog.harvest.sources.local import LocalSource

if __name__ == "__main__":
    source, catalog = sys.argv[1:]
    harvest(
        Catalog(catalog),
        LocalSource(source, leave_out=[catalog], batch_rows=10),
        chunk_events=20,
        checkpoint_events=60,
        progress=lambda state: print(state.entries, flush=True),
    )
    print("done", flush=True)
