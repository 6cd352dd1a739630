"""A store some days ago, for what only happens after days."""

from __future__ import annotations

import time

from bucketcatalog.store.wrappers import Wrapped

DAY = 86_400_000_000


class Earlier(Wrapped):
    """A store some days ago."""

    days = 3

    def now_us(self, below: str | None = None) -> int:
        return time.time_ns() // 1_000 - self.days * DAY
