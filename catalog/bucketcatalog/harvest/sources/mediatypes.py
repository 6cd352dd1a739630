"""Media types by file name: what follows the last dot, looked up in Python's own table, the same on every machine."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence

import pyarrow as pa

_COMPRESSED = {
    b".gz": "application/gzip",
    b".bz2": "application/x-bzip2",
    b".xz": "application/x-xz",
    b".zst": "application/zstd",
    b".z": "application/x-compress",
    b".br": "application/x-brotli",
}
_BY_ENDING = {ending.encode(): kind for ending, kind in mimetypes.MimeTypes(()).types_map[True].items()} | _COMPRESSED


def media_types(names: Sequence[bytes]) -> pa.Array:
    """The type of each name, null where the ending says nothing. Something compressed has the type of what compressed it."""
    find = _BY_ENDING.get
    return pa.array([find(name[name.rfind(b".") :].lower()) for name in names], pa.string())
