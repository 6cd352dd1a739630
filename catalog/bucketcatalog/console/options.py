"""What commands share: their arguments and options, and how these become catalogs and snapshots.

The command line of a process is for all of its machine to see, and stands in histories of shells. So the value of an option of a store can
come from a file (``secret=@FILE``) or from the environment (``secret='$NAME'``), which is for its own user alone.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..catalog import Catalog
from ..errors import CatalogWarning, InvalidOption, UnsupportedStore
from ..log.versions import Version
from ..model.names import owner_id
from ..model.times import Moment, Time, parse_time, shown_time
from ..query.snapshot import Snapshot
from ..store.open import WRITABLE
from .output import visible

_SECRET = re.compile(
    r"(?:^|_)(?:key|sas|auth)(?:_|$)|secret|token|passw|passphrase|credential|signature|connection_string", re.IGNORECASE
)
"""In the names of options whose values are secrets in some store or other."""
_NO_SECRET = re.compile(r"_(?:file|filename|path|name|id)$", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LONGEST_VALUE = 1 << 20
_FIRST_YEAR = 365 * 86_400 * 1_000_000
CatalogArgument = Annotated[
    str, typer.Argument(metavar="CATALOG", help="A path, or any URL that fsspec knows.", show_default=False)
]
Database = Annotated[
    str | None, typer.Option("--database", "-d", metavar="D", help="The database; not needed where there is one.")
]
WrittenDatabase = Annotated[str, typer.Option("--database", "-d", metavar="D", help="The database to write to.")]
StorageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="K=V",
        help="An option of the store, such as endpoint_url=..., secret=@FILE, secret='$VARIABLE'; repeat it.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV with a line of names, and nothing else, on standard output.")]
AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="T|V", help="A time, such as yesterday or 24h, or a version, instead of now.")
]
IgnoreCorruption = Annotated[
    bool, typer.Option("--ignore-corruption", help="Read past damaged and missing files; warnings say what is left out.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it; without this it only says what would be done.")]
Maintainer = Annotated[str | None, typer.Option("--writer", "-w", metavar="W", help="Who writes.  [default: maintainer-HOST]")]
Limit = Annotated[int | None, typer.Option("--limit", "-n", metavar="N", min=1, help="At most N lines.")]


def _owner(given: str | None) -> str | None:
    return None if given is None else owner_id(given)


Owner = Annotated[
    str | None,
    typer.Option(
        "--owner",
        metavar="UUID",
        callback=_owner,
        help="Whose bucket, where several have one of that name; without a bucket, whose buckets.",
    ),
]
BucketArgument = Annotated[str | None, typer.Argument(metavar="BUCKET", help="The bucket's name or id.", show_default=False)]
PrefixArgument = Annotated[str | None, typer.Argument(metavar="PREFIX", help="What the names begin with.", show_default=False)]
Depth = Annotated[
    int | None, typer.Option("--depth", metavar="N", min=0, help="By prefix, up to the N-th / behind PREFIX.", show_default=False)
]


def open_catalog(url: str, storage_options: Sequence[str] | None) -> Catalog:
    """The catalog at a path or url, with ``k=v`` options of its store."""
    return Catalog(url, storage_options=parse_options(storage_options, "storage") or None)


def parse_options(given: Sequence[str] | None, kind: str) -> dict[str, str]:
    """``k=v`` options of a ``kind`` as a mapping, with what ``k=@FILE`` and ``k=$VARIABLE`` stand for.

    ``InvalidOption`` says which one is none, and shows nothing of its value: it may be a secret. So may what is taken for the name of a
    file or a variable. A secret that stands there itself gives a warning.
    """
    options = {}
    for place, text in enumerate(given or (), 1):
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():  # secrets may end in =
            raise InvalidOption(
                f"Number {place} of the {kind} options is not of the form KEY=VALUE.", next_step="Write KEY=VALUE."
            )
        options[key] = _meant(key, value, kind)
    return options


def _meant(key: str, value: str, kind: str) -> str:
    """The value of an option."""
    if value.startswith("@"):
        return _from_file(key, value[1:], kind)
    if value.startswith("$"):
        return _from_environment(key, value[1:], kind)
    if value and _SECRET.search(key) and not _NO_SECRET.search(key):
        warnings.warn(
            f"The {kind} option {key} stands on the command line, which every user of this machine can see: write {key}=@FILE for what a "
            f"file says, or {key}='$VARIABLE' for the environment's.",
            CatalogWarning,
            stacklevel=2,
        )
    return value


def _from_file(key: str, path: str, kind: str) -> str:
    """What a file says, without the end of its last line."""
    problem = "it is too long"
    try:
        with Path(path).open("rb") as file:
            said = file.read(_LONGEST_VALUE + 1)
        if len(said) <= _LONGEST_VALUE:
            return said.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        problem = "it is no text"
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or "it has no such name"
    raise InvalidOption(
        f"The file that the {kind} option {key} names cannot be read: {problem}.",
        next_step=f"Write {key}=@FILE with a file of this machine, or {key}='$VARIABLE' where the value itself begins with @.",
    )


def _from_environment(key: str, name: str, kind: str) -> str:
    value = os.environ.get(name) if _VARIABLE.fullmatch(name) else None
    if value is None:
        raise InvalidOption(
            f"The environment variable that the {kind} option {key} names is not set.",
            next_step=f"Export it and write {key}='$VARIABLE', quoted, or {key}=@FILE where the value itself begins with $.",
        )
    return value


def refuse_unwritable(url: str) -> None:
    """``UnsupportedStore`` for a place that nothing can be written to, before anybody installs a package in order to open it."""
    protocol, separator, _ = url.partition("://")
    if separator and protocol not in WRITABLE:
        raise UnsupportedStore(
            f"Nothing can be written over {visible(protocol)}://: a put must show the whole object or nothing.",
            next_step="Write to a local path or to an object store (s3, gs, abfs).",
        )


def snapshot_at(catalog: Catalog, database: str | None, as_of: str | None, *, ignore_corruption: bool = False) -> Snapshot:
    """The database now, or at a time or version as users write them."""
    return catalog.snapshot(database=database, ignore_corruption=ignore_corruption, **moment(as_of))


def moment(text: str | None) -> dict[str, Any]:
    """A time or version as users write them, as options of a snapshot; None is now."""
    return asked_at(Moment.of(text))


def time_or_version(text: str | None) -> Time | Version | None:
    """A time or version as users write them, as the questions take it."""
    given = Moment.of(text)
    return given.version if asked_at(given).get("timestamp") is None else given.timestamp


def asked_at(moment: Moment) -> dict[str, Any]:
    """A moment that somebody has typed, as options of a snapshot."""
    if isinstance(moment.timestamp, str):
        _warn_of_seconds(moment.timestamp)
    return moment.asked


def _warn_of_seconds(text: str) -> None:
    """A number after @ that is a time of 1970 is more likely one in seconds, or in milliseconds."""
    if text.strip().startswith("@") and 0 < (micros := parse_time(text)) < _FIRST_YEAR:
        warnings.warn(f"{text} is {shown_time(micros)}: @ takes microseconds since the epoch.", CatalogWarning, stacklevel=2)
