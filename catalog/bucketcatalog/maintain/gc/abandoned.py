"""Puts that nobody will finish: found by their age, and thrown away by a maintainer.

On S3 these are multipart uploads, which are paid for until somebody aborts them; in a directory, temporary files. Neither is part of the
catalog: no listing shows them, and a put that is repeated begins anew. That one is under way and not abandoned is told by its age alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import InvalidOption
from ...model.paths import is_of_a_catalog
from ...store.base import Store, UnfinishedPut

SAFE_AGE = 3_600_000_000
"""Microseconds after which no put of a writer is under way: a commit is given up after five minutes, large files take longer."""


def abandoned(store: Store, older_than: int, *, below: str | None = None, force: bool = False) -> Iterator[UnfinishedPut]:
    """The unfinished puts of a catalog that began more than ``older_than`` microseconds ago by the store's clock.

    Who throws them away gives ``below``, a prefix that is its own, and goes by the store's time or gets a ``StoreError``; who only looks
    may go by the machine's. ``InvalidOption`` below ``SAFE_AGE``, unless forced: a put that is under way would fail, and be repeated by
    its writer.
    """
    if older_than < SAFE_AGE and not force:
        raise InvalidOption(
            f"Puts that began {older_than / 1e6:,.0f} s ago may be under way.",
            next_step="Give an age of an hour or more, or --force where no writer runs.",
        )
    before = store.now_us(below) - older_than
    return (put for put in store.unfinished_puts() if put.begun_us < before and is_of_a_catalog(put.name))
