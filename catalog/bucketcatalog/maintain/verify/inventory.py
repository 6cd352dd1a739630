"""What lies below a writer's prefix, by the names alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...log.files import LogFiles
from ...model import paths
from ...model.cuts import Head
from ...store.base import ObjectInfo

_KNOWN = {"transactions", "newest", "segments", "data"}


@dataclass
class Inventory:
    """The files of one writer in one database; ``strange`` are names that no reader knows."""

    writer: str
    transactions: dict[Head, ObjectInfo] = field(default_factory=dict)
    checkpoints: dict[Head, ObjectInfo] = field(default_factory=dict)
    markers: dict[Head, ObjectInfo] = field(default_factory=dict)
    segments: dict[bytes, ObjectInfo] = field(default_factory=dict)
    strange: list[str] = field(default_factory=list)


def inventory(files: LogFiles, writer: str) -> Inventory:
    """List everything of the writer but its data files: four requests and more where there is much."""
    found = Inventory(writer)
    below = f"{writer}/{files.database}/"
    found.strange += [f"{below}{name}/" for name in files.store.list_prefixes(below) if name not in _KNOWN]
    prefix = paths.transactions_prefix(writer, files.database)
    for info in files.store.list(prefix):
        file = paths.parse_log_file(prefix, info.name)
        if file is None:
            found.strange.append(info.name)
        else:
            kind = found.transactions if file.is_transaction else found.checkpoints
            kind[Head(file.revision, file.uuid)] = info
    prefix = paths.newest_prefix(writer, files.database)
    for info in files.store.list(prefix):
        file = paths.parse_newest_marker(prefix, info.name)
        if file is None:
            found.strange.append(info.name)
        else:
            found.markers[Head(file.revision, file.uuid)] = info
    prefix = paths.segments_prefix(writer, files.database)
    for info in files.store.list(prefix):
        uuid = paths.parse_segment(prefix, info.name)
        if uuid is None:
            found.strange.append(info.name)
        else:
            found.segments[uuid] = info
    return found
