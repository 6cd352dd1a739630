"""What data tables and their partitions are called, and where their files lie.

A name is any text: it passes through unchanged, with no case and no normal form of its own (persistence document, section 2.4). In a path
the characters that mean something there are written as ``%`` and two hexadecimal digits, and so is what begins with a dot or an underscore,
or is called as a folder of the log is. So ``/`` and ``..`` are only names, and every path says which name it is of.
"""

from __future__ import annotations

import re

from ...errors import InvalidName
from ...model.paths import FOLDERS, data_prefix

BEGINS = "data."
"""What stands before the name of a data table where tables are read and written."""
DEFAULT_PARTITION = "default"
_MOST = 240
_UNSAFE = re.compile(r'[\x00-\x1f\x7f%/\\:*?"<>|#\[\]{}]|^[._]')
_ESCAPED = re.compile("%([0-9A-F]{2})")
_FILE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.parquet")


def table_of(name: str) -> str | None:
    """The data table that a name such as ``data.cpu`` stands for; None where it stands for none."""
    return name.removeprefix(BEGINS) if name.startswith(BEGINS) and name != BEGINS else None


def escaped(name: str, what: str) -> str:
    """A name as one part of a path; ``InvalidName`` where it is no text of at least one character, or too long for a path."""
    if not isinstance(name, str) or not name:
        raise InvalidName(f"{name!r} cannot be the name of a {what}.", next_step="Give text of at least one character.")
    part = f"%{ord(name[0]):02X}{name[1:]}" if name in FOLDERS else _UNSAFE.sub(_as_digits, name)
    try:
        size = len(part.encode())
    except UnicodeEncodeError:
        raise InvalidName(
            f"{name!r} cannot be the name of a {what}: it is not Unicode.", next_step="Give Unicode text."
        ) from None
    if size > _MOST:
        raise InvalidName(
            f"{name[:40]!r}... cannot be the name of a {what}: it takes {size} bytes in a path.",
            next_step=f"Give one of at most {_MOST}.",
        )
    return part


def unescaped(part: str) -> str:
    """The name that was escaped so."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), part)


def file_path(writer: str, database: str, partition: str, table: str, chunk: str) -> str:
    """The name of a file in the store: ``<writer>/<database>/data/<partition>/<table>/<chunk>.parquet``."""
    return f"{data_prefix(writer, database)}{escaped(partition, 'partition')}/{escaped(table, 'data table')}/{chunk}.parquet"


def marker_path(writer: str, database: str, table: str, id_: str) -> str:
    """The name of the file that says what was deleted of a data table: ``<writer>/<database>/data/.deleted/<table>/<id>.json``.

    No partition's files lie there: a name that begins with a dot is escaped.
    """
    return f"{data_prefix(writer, database)}.deleted/{escaped(table, 'data table')}/{id_}.json"


def parsed(prefix: str, path: str) -> tuple[str, str, str] | None:
    """Partition, table and chunk of a file below a writer's ``prefix`` of data; None for what is called otherwise."""
    parts = path.removeprefix(prefix).split("/")
    if not path.startswith(prefix) or len(parts) != 3 or _FILE.fullmatch(parts[2]) is None:
        return None
    return unescaped(parts[0]), unescaped(parts[1]), parts[2].removesuffix(".parquet")


def _as_digits(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"
