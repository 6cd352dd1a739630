"""``harvest``."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Annotated

import typer

from ..catalog import DEFAULT_DATABASE
from ..console.options import (
    CatalogArgument,
    Json,
    StorageOption,
    WrittenDatabase,
    open_catalog,
    parse_options,
    refuse_unwritable,
)
from ..console.output import finish, number, plain, print_facts, size, visible, visible_name, write
from ..console.progress import progress_line
from ..harvest import Harvested
from ..harvest import harvest as run_harvest

Globs = list[str] | None

SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="A directory, by path or URL; a bucket: s3://BUCKET/PATH.", show_default=False)
]
HarvestWriter = Annotated[
    str | None, typer.Option("--writer", "-w", metavar="W", help="The writer id.  [default: harvest-HOST-..., one a source]")
]
Bucket = Annotated[str | None, typer.Option("--bucket", metavar="B", help="The bucket.  [default: the source's path]")]
Owner = Annotated[
    str | None, typer.Option("--owner", metavar="UUID", help="The bucket's owner.  [default: derived from the host]")
]
Include = Annotated[Globs, typer.Option("--include", metavar="GLOB", help="Only paths that match; repeat it.")]
Exclude = Annotated[
    Globs, typer.Option("--exclude", metavar="GLOB", help="Leave alone what matches, here and in the catalog; repeat it.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would change; write nothing.")]
AllowEmpty = Annotated[
    bool, typer.Option("--allow-empty", help="Take everything for deleted where the source has nothing at all.")
]
Metadata = Annotated[
    bool, typer.Option("--metadata", help="Ask for the headers of each object of a bucket that is new; a request each.")
]
Tags = Annotated[bool, typer.Option("--tags", help="Ask for the tags of each object of a bucket; a request each.")]
Checksum = Annotated[
    bool, typer.Option("--checksum", help="Read files for their SHA-256, each version once; a dry run reads none.")
]
SourceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--source-option",
        metavar="K=V",
        help="An option of the source, such as endpoint_url=...; repeat it.  [default: environment]",
    ),
]


def harvest(
    source: SourceArgument,
    catalog: CatalogArgument,
    database: WrittenDatabase = DEFAULT_DATABASE,
    writer: HarvestWriter = None,
    bucket: Bucket = None,
    owner: Owner = None,
    include: Include = None,
    exclude: Exclude = None,
    dry_run: DryRun = False,
    allow_empty: AllowEmpty = False,
    metadata: Metadata = False,
    tags: Tags = False,
    checksum: Checksum = False,
    source_option: SourceOption = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Bring the inventory of a directory or bucket up to date.

    The first run adds everything, a later one only what is new, overwritten or deleted. A run that was interrupted is completed by the
    next. Globs match the whole path below the source, * matches / too.

    Example: bucketcatalog harvest /usr ./catalog --exclude 'share/doc/*'
    """
    refuse_unwritable(catalog)
    opened = open_catalog(catalog, storage_option)
    with progress_line(f"harvesting {visible_name(source)}") as tell:
        result = run_harvest(
            opened,
            source,
            database=database,
            writer=writer,
            bucket=bucket,
            owner=owner,
            include=include or (),
            exclude=exclude or (),
            dry_run=dry_run,
            allow_empty=allow_empty,
            metadata=metadata,
            tags=tags,
            checksum=checksum,
            source_options=parse_options(source_option, "source") or None,
            progress=tell,
        )
    print_harvested(result, catalog, as_json=as_json)


def print_harvested(result: Harvested, catalog: str, *, as_json: bool) -> None:
    """Tell what a harvest did."""
    if as_json:
        print_facts(plain(asdict(result)), as_json=True)
    else:
        _say(result, catalog)


def _say(result: Harvested, catalog: str) -> None:
    would = "would be " if result.dry_run else ""
    write(
        f"{number(result.entries, 'entry', 'entries')}: {result.created:,} {would}created, {result.overwritten:,} {would}overwritten, "
        + (f"{result.updated:,} {would}updated, " if result.updated else "")
        + f"{result.deleted:,} {would}deleted, {result.unchanged:,} unchanged; {size(result.bytes)} changed"
    )
    if result.versions or result.version_changes:
        write(f"{number(result.versions, 'version')} with delete markers: {result.version_changes:,} {would}changed")
    if result.hashed:
        write(f"{number(result.hashed, 'file')} read for checksums: {size(result.hashed_bytes)}")
    if result.errors:
        _say_failed(result, catalog)
    if not result.dry_run:
        write(f"{number(len(result.transactions), 'commit')} by {result.writer} in {result.seconds:.1f} s")
    finish()


def _say_failed(result: Harvested, catalog: str) -> None:
    """Some of what failed; all of it is in the catalog, where there is one."""
    write(f"{number(result.errors, 'entry', 'entries')} {'cannot' if result.dry_run else 'could not'} be catalogued:")
    for failed in result.failed:
        write(f"  {visible(failed.path)}: {visible(failed.message)}")
    if not result.dry_run:
        shown = shlex.join(
            ["bucketcatalog", "export", catalog, "harvest_errors", "errors.parquet", "--database", result.database]
        )
        write(f"  all that are known: {visible(shown)}")
    elif result.errors > len(result.failed):
        write(f"  and {result.errors - len(result.failed):,} more")


COMMANDS = {"harvest": harvest}
