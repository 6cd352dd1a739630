"""Object stores: the seam, its backends, and how to open one. ``bucketcatalog.store.faults`` wraps any of them for tests."""

from bucketcatalog.store.base import ObjectInfo, Store
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.open import open_store
from bucketcatalog.store.remote import FsspecStore

__all__ = ["FsspecStore", "LocalStore", "MemoryStore", "ObjectInfo", "Store", "open_store"]
