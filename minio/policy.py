"""The rights that each role of a catalog needs, as policy documents for MinIO, AWS and whatever else takes them.

    python -m minio.policy ROLE BUCKET[/ROOT] [WRITER]

The documents stand in `minio/policies`, with the words BUCKET, ROOT and WRITER in the places of the real names. Object names begin with
``<root>/<writer>/<database>/``, so what a writer may do follows from its prefix alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "policies"
ROLES = ("reader", "writer", "compactor", "maintainer")

_PREFIXES = {"compactor": "compactor-", "maintainer": "maintainer-"}
"""How the ids of writers begin that readers believe more of than their own events; as in bucketcatalog.names. All others are plain."""
_PLACEHOLDER = re.compile(r"BUCKET|ROOT/|WRITER")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
# As in bucketcatalog.names, which makes a prefix of it.
_WRITER = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}", re.ASCII)
# In a policy * and ? stand for any characters, and ${...} for a variable.
_PATTERN = re.compile(r"[*?$]|[\x00-\x1f]")


class PolicyError(ValueError):
    """There is no policy for these names; the message says why."""


def policy(role: str, bucket: str, root: str = "", writer: str | None = None) -> dict[str, Any]:
    """The policy document of a role for the catalog at ``root`` in ``bucket``; an empty root is the whole bucket.

    Every role but the reader names the ``writer`` below whose prefix it puts objects. Raises ``PolicyError`` for names that a policy
    would not take literally, that would reach past the catalog, or that belong to another role.
    """
    if role not in ROLES:
        raise PolicyError(f"{role!r} is no role: there are {', '.join(ROLES)}")
    if not _BUCKET.fullmatch(bucket):
        raise PolicyError(f"{bucket!r} cannot be the name of a bucket")
    parts = root.removesuffix("/").split("/") if root else []
    if any(part in ("", ".", "..") for part in parts) or _PATTERN.search(root):
        raise PolicyError(
            f"{root!r} cannot be the root of a catalog in a policy: give a path without empty parts, dots alone, *, ? and $"
        )
    if role == "reader" and writer is not None:
        raise PolicyError("a reader writes nothing: leave the writer out")
    if role != "reader" and not (writer and _WRITER.fullmatch(writer)):
        raise PolicyError(f"a {role} needs the id of its writer: {writer!r} is none")
    if role != "reader":
        _refuse_others_prefix(role, writer or "")
    names = {"BUCKET": bucket, "ROOT/": "".join(part + "/" for part in parts), "WRITER": writer or ""}
    document: dict[str, Any] = _fill(json.loads((FOLDER / f"{role}.json").read_text()), names)
    if not parts:
        # Here the condition would ask for any prefix at all, and refuse a listing of the whole bucket, which has none.
        for statement in document["Statement"]:
            statement.pop("Condition", None)
    return document


def _refuse_others_prefix(role: str, writer: str) -> None:
    """A role goes with how the id begins, for that is what readers go by: whoever may put below ``maintainer-`` is one for them."""
    meant = next((name for name, prefix in _PREFIXES.items() if writer.startswith(prefix)), "writer")
    if meant != role:
        ids = f"an id that begins with {_PREFIXES[role]!r}" if role in _PREFIXES else "an id that begins with no role's prefix"
        raise PolicyError(f"{writer!r} is the id of a {meant} for all who read: ask for the policy of a {meant}, or give {ids}")


def _fill(value: Any, names: dict[str, str]) -> Any:
    """The document with the names in the places of their words; a name that looks like such a word stays as it is."""
    if isinstance(value, dict):
        return {key: _fill(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, names) for item in value]
    return _PLACEHOLDER.sub(lambda match: names[match[0]], value)


def main(arguments: list[str]) -> int:
    """Print the document and return the exit code: 0, or 1 with one line that says what is wrong with the names."""
    parser = argparse.ArgumentParser(prog="python -m minio.policy", description="The policy of a role of a catalog, as JSON.")
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("catalog", metavar="BUCKET[/ROOT]", help="with or without s3://")
    parser.add_argument("writer", nargs="?", metavar="WRITER", help="the id of the writer, for every role but the reader")
    asked = parser.parse_args(arguments)
    bucket, _, root = asked.catalog.removeprefix("s3://").partition("/")
    try:
        document = policy(asked.role, bucket, root, asked.writer)
    except PolicyError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(document, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
