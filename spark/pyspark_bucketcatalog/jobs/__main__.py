"""The jobs from a command line: ``python -m pyspark_bucketcatalog.jobs``, or this file given to ``spark-submit``.

Its imports are absolute: what is submitted is run as a file of no package. What options of stores name, files and variables, is read by the
driver before there is a session: executors get values, and no process gets them on its command line.
"""

import os
from dataclasses import asdict
from typing import Annotated

import typer
from pyspark.sql import SparkSession

from bucketcatalog.catalog import DEFAULT_DATABASE
from bucketcatalog.cli.checkpoint import print_checkpoint
from bucketcatalog.cli.gc import (
    GRACE,
    PIN_AGE,
    DataOption,
    DataUrl,
    Force,
    OlderThan,
    PinAge,
    boundary_times,
    collected_facts,
    refuse_problems,
)
from bucketcatalog.cli.harvest import (
    AllowEmpty,
    Bucket,
    Checksum,
    DryRun,
    Exclude,
    HarvestWriter,
    Include,
    Metadata,
    Owner,
    SourceArgument,
    SourceOption,
    Tags,
    print_harvested,
)
from bucketcatalog.cli.spark import OUTPUT
from bucketcatalog.console.app import main, program
from bucketcatalog.console.options import (
    CatalogArgument,
    Database,
    Json,
    Maintainer,
    StorageOption,
    WrittenDatabase,
    Yes,
    parse_options,
    refuse_unwritable,
)
from bucketcatalog.console.output import print_facts
from bucketcatalog.model.names import COMPACTOR_PREFIX, host_writer
from pyspark_bucketcatalog import jobs
from pyspark_bucketcatalog.jobs.checkpointing import MOST_TASKS

app = program(help="Work on a catalog that Spark's executors do.")


@app.callback()
def _root() -> None:
    """Work on a catalog that Spark's executors do."""


@app.command()
def checkpoint(
    catalog: CatalogArgument,
    writer: Annotated[
        str | None, typer.Option("--writer", "-w", metavar="W", help="Who writes it.  [default: compactor-HOST]")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Merge and write everything again, whatever has changed.")] = False,
    max_tasks: Annotated[int, typer.Option("--max-tasks", metavar="N", min=1, help="At most so many tasks.")] = MOST_TASKS,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Write a checkpoint of every writer's cut, merged on the executors.

    Example: spark-submit .../pyspark_bucketcatalog/jobs/__main__.py checkpoint s3://lake/inventory
    """
    chosen = host_writer(COMPACTOR_PREFIX) if writer is None else writer
    options = parse_options(storage_option, "storage")
    spark = SparkSession.builder.appName("bucketcatalog checkpoint").getOrCreate()
    try:
        written = jobs.checkpoint(
            spark, catalog, database, writer=writer, full=full, storage_options=options, max_tasks=max_tasks
        )
    finally:
        spark.stop()
    print_checkpoint(written, chosen, as_json=as_json)


@app.command()
def gc(
    catalog: CatalogArgument,
    older_than: OlderThan = GRACE,
    data_url: DataUrl = None,
    data_option: DataOption = None,
    pin_age: PinAge = PIN_AGE,
    yes: Yes = False,
    force: Force = False,
    writer: Maintainer = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Forget tombstones and delete their data where nothing needs it, on the executors.

    Example: spark-submit .../pyspark_bucketcatalog/jobs/__main__.py gc s3://lake/inventory --older-than 24h --yes
    """
    options, of_data = parse_options(storage_option, "storage"), parse_options(data_option, "data") or None
    spark = SparkSession.builder.appName("bucketcatalog gc").getOrCreate()
    try:
        done = jobs.gc(
            spark,
            catalog,
            database,
            older_than=older_than,
            data_url=data_url,
            data_options=of_data,
            dry_run=not yes,
            force=force,
            pin_age=pin_age,
            writer=writer,
            storage_options=options,
        )
    finally:
        spark.stop()
    print_facts(collected_facts(done), as_json=as_json)
    refuse_problems(done.problems)


@app.command()
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
    max_tasks: Annotated[
        int | None,
        typer.Option("--max-tasks", metavar="N", min=1, help="About so many tasks at a time.  [default: 4 for each core]"),
    ] = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Bring the inventory of a directory or bucket up to date, listed by the executors.

    Example: spark-submit .../pyspark_bucketcatalog/jobs/__main__.py harvest s3://photos s3://lake/inventory
    """
    refuse_unwritable(catalog)
    options, of_source = parse_options(storage_option, "storage"), parse_options(source_option, "source") or None
    spark = SparkSession.builder.appName("bucketcatalog harvest").getOrCreate()
    try:
        result = jobs.harvest(
            spark,
            source,
            catalog,
            database,
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
            source_options=of_source,
            storage_options=options,
            max_tasks=max_tasks,
        )
    finally:
        spark.stop()
    print_harvested(result, catalog, as_json=as_json)


@app.command()
def reap(
    catalog: CatalogArgument,
    older_than: OlderThan = GRACE,
    yes: Yes = False,
    force: Force = False,
    writer: Maintainer = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """End the rows whose parent has ended, such as the objects of deleted buckets, found by the executors.

    Example: spark-submit .../pyspark_bucketcatalog/jobs/__main__.py reap s3://lake/inventory --yes
    """
    options = parse_options(storage_option, "storage")
    spark = SparkSession.builder.appName("bucketcatalog reap").getOrCreate()
    try:
        done = jobs.reap(
            spark,
            catalog,
            database,
            older_than=older_than,
            dry_run=not yes,
            force=force,
            writer=writer,
            storage_options=options,
        )
    finally:
        spark.stop()
    print_facts({**asdict(done), **boundary_times(done)}, as_json=as_json)


def _open_output() -> None:
    """Where ``bucketcatalog spark`` says so, standard output is a file: spark-submit would mix it with standard error."""
    if path := os.environ.get(OUTPUT):
        file = os.open(path, os.O_WRONLY)
        os.dup2(file, 1)
        os.close(file)


if __name__ == "__main__":
    _open_output()
    main(app, name="python -m pyspark_bucketcatalog.jobs")
