"""``verify``: what is wrong with a catalog."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import typer

from ..checking.findings import Finding, Severity
from ..errors import CorruptionError
from ..losses import Held
from .options import CatalogArgument, Database, Json, StorageOption, open_catalog
from .output import finish, number, to_json, visible, write
from .progress import progress_line


def verify(
    catalog: CatalogArgument,
    deep: Annotated[
        bool, typer.Option("--deep", help="Compare what each checkpoint says with what its transactions say, too.")
    ] = False,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Read everything and say what is wrong, one line each; ends with 1 if there is an error among it.

    Example: bucketcatalog verify s3://lake/inventory
    """
    opened = open_catalog(catalog, storage_option)
    counts: Counter[Severity] = Counter()
    with progress_line("verifying") as tell:
        for finding in opened.verify(database=database, deep=deep, tell=tell):
            counts[finding.severity] += 1
            write(to_json(_facts(finding)) if as_json else visible(str(finding)))
    if not as_json:
        found = [number(counts[severity], word) for severity, word in _WORDS.items() if counts[severity]]
        write(f"{', '.join(found)}." if found else "Nothing is wrong.")
    finish()
    if counts[Severity.ERROR]:
        raise CorruptionError(
            f"{number(counts[Severity.ERROR], 'error')} in {visible(opened.url)}.",
            next_step="Do what stands at the end of each line.",
        )


_WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "remark"}


def _facts(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity.value,
        "code": finding.code,
        "file": finding.file,
        "message": finding.message,
        "held": [shown_held(held) for held in finding.held],
        "remedy": finding.remedy,
    }


def shown_held(held: Held) -> dict[str, Any]:
    """What was held, for JSON: keys as hexadecimal digits."""
    if held.table is None:
        return {"writer": held.writer, "first_revision": held.first_revision, "last_revision": held.last_revision}
    return {
        "table": held.table,
        "rows": held.rows,
        "first_key": held.first_key.hex(),
        "last_key": held.last_key.hex(),
    }


COMMANDS = {"verify": verify}
