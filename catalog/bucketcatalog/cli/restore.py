"""``restore`` and ``clone``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from ..console.options import (
    AsOf,
    BucketArgument,
    CatalogArgument,
    Database,
    Json,
    Maintainer,
    Owner,
    PrefixArgument,
    StorageOption,
    Yes,
    moment,
    open_catalog,
    parse_options,
    refuse_unwritable,
)
from ..console.output import finish, number, plain, print_facts, print_rows, size, visible, visible_name, write
from ..console.progress import progress_line
from ..maintain.restore import Restored

_OF_OBJECTS = {"bucket", "bucket_id", "owner"}
"""The columns of rows that belong to a bucket."""


def restore(
    catalog: CatalogArgument,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table, such as objects.", show_default=False)],
    to: Annotated[str, typer.Argument(metavar="T|V", help="The time or version that it is to be as.", show_default=False)],
    bucket: BucketArgument = None,
    prefix: PrefixArgument = None,
    owner: Owner = None,
    yes: Yes = False,
    skip_collected: Annotated[
        bool, typer.Option("--skip-collected", help="Leave out rows whose data may be gone, instead of doing nothing.")
    ] = False,
    with_purged: Annotated[
        bool, typer.Option("--with-purged", help="Put purged rows again, too: for who knows that nobody has deleted their data.")
    ] = False,
    writer: Maintainer = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Make a table, or a bucket's rows of it, what it was at a time or version, in one transaction; the history since stays.

    Example: bucketcatalog restore ./catalog objects before-cleanup photos 2024/ --yes
    """
    opened = open_catalog(catalog, storage_option)
    at = moment(to)
    with progress_line(f"comparing {visible_name(table)} with what it was"):
        found = opened.restore(
            table,
            database=database,
            bucket=bucket,
            owner=owner,
            prefix=prefix,
            writer=writer,
            dry_run=not yes,
            skip_collected=skip_collected,
            with_purged=with_purged,
            **at,
        )
    if as_json:
        print_facts({**asdict(found), "sample": [plain(row) for row in found.sample], "dry_run": not yes}, as_json=True)
        return
    _say(found, visible("/".join(part for part in (bucket, prefix) if part)), yes=yes)


def _say(found: Restored, place: str, *, yes: bool) -> None:
    """``place`` is what it was restored of alone, empty for all of it."""
    total = found.put + found.updated + found.deleted
    if not total:
        write(f"{visible_name(found.table)}{f' of {place}' if place else ''} is what it was then: nothing to do.")
    else:
        done = f"{found.put:,} put again, {found.updated:,} updated, {found.deleted:,} deleted"
        write(f"{number(total, 'row')} of {visible_name(found.table)}: {done}{'' if yes else ' (with --yes)'}")
    if found.skipped:
        write(f"{number(found.skipped, 'row')} left out: their data may be gone{'' if yes else ' (with --skip-collected)'}")
    if found.ended_parents:
        ended = number(found.ended_parents, "row")
        write(f"restore {found.parent} first: {ended} of it that own some of these have ended")
    if found.committed is not None:
        write(f"committed {found.committed}")
    if total and not yes:
        rows, columns = _readable(found.sample)
        print_rows(map(plain, rows), columns, as_json=False, nothing="")
        if len(found.sample) < total:
            write(f"and {total - len(found.sample):,} more")
    finish()


def _readable(sample: Sequence[Mapping[str, Any]]) -> tuple[Sequence[Mapping[str, Any]], list[str]]:
    """Rows and their columns as people are shown them: in place of ids the names of buckets, and owners only where there are several."""
    columns = list(sample[0])
    if not {*columns} >= _OF_OBJECTS:
        return sample, columns
    left_out = {"bucket_id", *(["owner"] if len({row["owner"] for row in sample}) == 1 else [])}
    rows = [{**row, "bucket": row["bucket"] or row["bucket_id"]} for row in sample]
    return rows, [column for column in columns if column not in left_out]


def clone(
    catalog: CatalogArgument,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Where the clone is to be: a path or URL.", show_default=False)],
    as_of: AsOf = None,
    writer: Maintainer = None,
    database: Database = None,
    storage_option: StorageOption = None,
    target_option: Annotated[
        list[str] | None,
        typer.Option(
            "--target-option",
            metavar="K=V",
            help="An option of the target's store, such as endpoint_url=...; repeat it.  [default: the storage options]",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the state of now, or of a time or version, as a catalog of its own, without the history before it.

    Data files stay where they are, kept by a tag of this catalog. A clone that was interrupted is finished by the next run.

    Example: bucketcatalog clone ./catalog ./copy --as-of before-cleanup
    """
    refuse_unwritable(target)
    opened = open_catalog(catalog, storage_option)
    options = parse_options(target_option, "target") or parse_options(storage_option, "storage") or None
    at = moment(as_of)
    with progress_line("cloning"):
        made = opened.clone(target, database=database, writer=writer, storage_options=options, **at)
    if as_json:
        print_facts(asdict(made), as_json=True)
        return
    if made.bytes:
        write(f"{number(made.rows, 'row')} in {number(made.segments, 'segment')}, {size(made.bytes)}: {visible(made.target)}")
    else:
        write(f"{visible(made.target)} is a clone of this version already.")
    write(f"of version {visible(made.version)}, whose data the tag {made.tag} of {visible(opened.url)} keeps")
    finish()


COMMANDS = {"restore": restore, "clone": clone}
