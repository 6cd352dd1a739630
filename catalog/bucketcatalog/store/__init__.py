"""Object stores: the seam, its backends, and how to open one. ``bucketcatalog.store.faults`` wraps any of them for tests."""

from .base import ObjectInfo, Store
from .local import LocalStore
from .memory import MemoryStore
from .open import open_store
from .remote import FsspecStore

__all__ = ["FsspecStore", "LocalStore", "MemoryStore", "ObjectInfo", "Store", "open_store"]
