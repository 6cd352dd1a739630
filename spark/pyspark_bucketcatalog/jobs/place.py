"""Where a catalog is, for tasks that open it elsewhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bucketcatalog import Catalog


@dataclass(frozen=True)
class CatalogPlace:
    """Where a catalog is, for whoever opens it elsewhere; it travels with what its store needs, and shows none of it."""

    path: str
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None) -> CatalogPlace:
        """The place; executors run in other folders, so a path on disk is made whole."""
        text = os.fspath(path)
        return cls(text if "://" in text else str(Path(text).absolute()), dict(storage_options or {}))

    def open(self) -> Catalog:
        """The catalog, opened in this process."""
        return Catalog(self.path, storage_options=self.storage or None)
