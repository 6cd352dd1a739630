"""Options as they are given: strings that Spark passes on, by the names that are known, and what each of them says.

Names are case-insensitive and arrive in lower case. Whatever is not known, or says nothing that it can mean, is an error.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from bucketcatalog import InvalidOption
from bucketcatalog.model.times import Moment

STORAGE = "storage."
NAMES_OF_READ = (
    "path",
    "database",
    "table",
    "columns",
    "timestampAsOf",
    "versionAsOf",
    "bucket",
    "owner",
    "prefix",
    "where",
    "onSchemaConflict",
    "strict",
    "ignoreCorruption",
    "maxPartitionRows",
    "readChangeFeed",
    "readDifference",
    "preImages",
    "startingVersion",
    "startingTimestamp",
    "endingVersion",
    "endingTimestamp",
)
ONLY_OF_STREAMS = ("maxFilesPerTrigger", "maxBytesPerTrigger", "startingState", "pin")
NAMES_OF_STREAM = (
    "path",
    "database",
    "table",
    "readChangeFeed",
    "startingVersion",
    "startingTimestamp",
    "ignoreCorruption",
    "maxPartitionRows",
    "writer",
    *ONLY_OF_STREAMS,
)
NAMES_OF_WRITE = ("path", "database", "table", "writer", "operation", "txnAppId", "txnVersion", "bloomFilters")
_FILTERS = "Take all events, and narrow them by where() and select() of the DataFrame."
_BATCHES_OF_STREAM = "Read them by spark.read, such as in foreachBatch, with readChangeFeed and both ends."
_ENDS_OF_STREAM = "Use spark.read, or trigger(availableNow=True), which ends with what there is when it begins."
_FROM_THEN_ON = "Give {} with startingState, for the state there and the events from then on, or use spark.read."
_NOT_OF_STREAMS = {
    **dict.fromkeys(("columns", "bucket", "owner", "prefix", "where"), ("A stream has all events of a table", _FILTERS)),
    "preImages": ("The events of a stream come without what they ended", _BATCHES_OF_STREAM),
    "readDifference": ("A stream has events, and no differences", "Set readChangeFeed to true instead, or use spark.read."),
    "timestampAsOf": ("A stream has no state that it shows", _FROM_THEN_ON.format("startingTimestamp")),
    "versionAsOf": ("A stream has no state that it shows", _FROM_THEN_ON.format("startingVersion")),
    **dict.fromkeys(("endingVersion", "endingTimestamp"), ("A stream has no end", _ENDS_OF_STREAM)),
    "strict": (
        "A stream follows every branch of a forked timeline",
        "Leave it out, and look into the table forks by spark.read.",
    ),
    "onSchemaConflict": ("Data tables have no events to follow", "Use spark.read."),
}
"""Options of a read that a stream does not take: why, and the way round."""


def by_names(options: Mapping[str, str], names: Sequence[str]) -> tuple[dict[str, str], dict[str, Any]]:
    """The options by the ``names`` of what can be given, and those of the store."""
    known = {name.lower(): name for name in names}
    given: dict[str, str] = {}
    storage: dict[str, Any] = {}
    for key, value in options.items():
        if key.lower().startswith(STORAGE):
            storage[key[len(STORAGE) :]] = _storage_value(value)
        else:
            given[_known(key, known)] = value
    return given, storage


def _known(key: str, known: Mapping[str, str]) -> str:
    if key.lower() == "paths":
        raise InvalidOption("A read is of one catalog.", next_step="Give load() one path, and unite the DataFrames.")
    if key.lower() == "filterpushdown":
        raise InvalidOption(
            "Filters of a query cannot narrow what is read: Spark would use them for other queries of the same DataFrame too.",
            next_step="Leave the option filterPushdown out. Name what to read with the options where, bucket, owner, prefix "
            "and columns.",
        )
    name = known.get(key.lower())
    if name is None and key.lower() in map(str.lower, ONLY_OF_STREAMS):
        raise InvalidOption(f"The option {key!r} is about streams.", next_step="Use spark.readStream, or leave it out.")
    of_stream = "maxFilesPerTrigger" in known.values()
    if name is None and of_stream:
        refuse_of_batches([key])
    if name is None:
        meanings = {name.lower(): f"{name}, of a stream" for name in ONLY_OF_STREAMS} | dict(known)
        near = difflib.get_close_matches(key.lower(), meanings, n=1)
        meant = f"Did you mean {meanings[near[0]]}? " if near else ""
        of = " of a stream" if of_stream else ""
        raise InvalidOption(
            f"There is no option {key!r}{of}.",
            next_step=f"{meant}The options are {', '.join(known.values())} and {STORAGE}* for the store.",
        )
    return name


def refuse_of_batches(keys: Iterable[str]) -> None:
    """``InvalidOption`` for the first of these options, in whatever case, that a read takes and a stream does not."""
    given = {key.lower() for key in keys}
    for name, (why, step) in _NOT_OF_STREAMS.items():
        if name.lower() in given:
            raise InvalidOption(f"{why}: {name} is about batches.", next_step=step)


def path_in(given: Mapping[str, str]) -> str:
    """Where the catalog is; ``InvalidOption`` where nothing says so."""
    if not given.get("path"):
        raise InvalidOption(
            "No catalog is named.",
            next_step="Give load() its path or url. In SQL give the option path, and leave the columns out of CREATE TABLE.",
        )
    return given["path"]


def moment_in(given: Mapping[str, str], pattern: str) -> Moment:
    """The version and time that options named like ``pattern`` give."""
    if pattern.startswith("{}"):
        return Moment(given.get(pattern.format("version")), given.get(pattern.format("timestamp")))
    return Moment(given.get(pattern.format("Version")), given.get(pattern.format("Timestamp")))


def list_in(given: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    """Names with commas between, None where they are not given."""
    if name not in given:
        return None
    found = tuple(part.strip() for part in given[name].split(","))
    if not all(found) or len(set(found)) < len(found):
        raise InvalidOption(f"The option {name} is {given[name]!r}.", next_step="Name columns, each once, with commas between.")
    return found


def pre_images_in(given: Mapping[str, str]) -> bool | tuple[str, ...]:
    """Whether what was before is asked for, or which columns of it."""
    if given.get("preImages", "false").strip().lower() in ("true", "false"):
        return flag_in(given, "preImages")
    return list_in(given, "preImages") or False


def flag_in(given: Mapping[str, str], name: str) -> bool:
    """Whether it is true, which it is not where it is not given."""
    text = given.get(name, "false").strip().lower()
    if text not in ("true", "false"):
        raise InvalidOption(f"The option {name} is {given[name]!r}.", next_step="Set it to true or false.")
    return text == "true"


Default = TypeVar("Default", int, int | None)


def positive_in(given: Mapping[str, str], name: str, default: Default) -> int | Default:
    """A whole number above 0."""
    if name not in given:
        return default
    text = given[name].strip()
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise InvalidOption(f"The option {name} is {given[name]!r}.", next_step="Set it to a whole number above 0.")
    return int(text)


def whole_in(given: Mapping[str, str], name: str) -> int | None:
    """A whole number, None where it is not given."""
    if name not in given:
        return None
    try:
        return int(given[name])
    except ValueError:
        raise InvalidOption(f"The option {name} is {given[name]!r}.", next_step="Set it to a whole number.") from None


def _storage_value(text: str) -> Any:
    """The value that the store's library gets."""
    lowered = text.strip().lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
