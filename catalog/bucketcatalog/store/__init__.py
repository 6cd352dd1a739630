"""Disks and networks behind one seam: the only package that talks to either.

It moves bytes and knows nothing of what they mean: before it comes the model, which says what objects are called, after it the log.

::

    base               the seam: few methods, each with its guarantee
    secrets            what a store was opened with and nobody may see
    tickets            what pickles hold in place of secrets
    retry              tries again, with jitter, until a deadline
    learnt             how long an offset of a store's clock to this machine's holds
    object_names       which strings can name an object, and their order over directories
    filesystem         what a local file system's errors mean, which directories are on disk, what dead puts
                       left
    local              a directory, with real durability
    memory             a store in this process
    elsewhere          a store's objects as files of those who read by themselves
    remote_failures    errors of fsspec's stores as ours, and what to say of a missing package
    remote_files       files that fsspec reaches, with all that is told of them
    remote             any other store of fsspec; writes where puts are atomic
    wrappers           stores that pass calls on, and count them
    obstacles          a store for who reads on: listings go past what is in their way, and tell it
    faults             stores that misbehave, for tests
    inventory          the seam to a bucket whose inventory is taken
    open               the store, or the inventory, that a URL names
    s3/                a package: S3 and what speaks like it
"""

from .base import ObjectInfo, Store
from .local import LocalStore
from .memory import MemoryStore
from .open import open_store
from .remote import FsspecStore

__all__ = ["FsspecStore", "LocalStore", "MemoryStore", "ObjectInfo", "Store", "open_store"]
