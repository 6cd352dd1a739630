"""Tables of rows in Parquet files, as IOx's persisted catalog kept them: many writers, soft deletes, compaction, rebuild.

::

    errors         what reading and writing data tables refuses
    names          what tables and partitions are called, and where their files lie
    statistics     what Parquet statistics say, as rows, and which row groups they rule out
    bloom_filters  which values row groups have none of
    files          rows as a file, and what the catalog says of it
    schemas        what becomes of files with different columns
    predicates     which rows were deleted
    live           what counts at a cut
    reading        files read: the rows that count
    plan           which files and row groups a read opens
    read           reads of ``data.NAME``
    write          rows written as files
    compact        small files made into large ones
    restore        a table as it was at another cut
    table          ``cat.data(NAME)``
    findings       what rebuilding and verifying say of files
    footers        what lies below the folders of data, and says of itself
    recovery       what was there, as far as files and markers tell
    named          what a catalog names of data tables already
    rebuild        the catalog made anew from the files
    verify         whether the files are what the catalog says
    cli/           what there is to type
"""

from __future__ import annotations

from ...registry import IN_CATALOG, System
from ...v1 import iox_pb2

SYSTEM = System(
    name="iox",
    declarations=iox_pb2,
    names=("data",),
    reads="bucketcatalog.systems.iox.read:READS",
    writes="bucketcatalog.systems.iox.write:WRITES",
    opens="bucketcatalog.systems.iox.table:DataTable",
    jobs="bucketcatalog.systems.iox.compact:JOBS",
    commands="bucketcatalog.systems.iox.cli:app",
    restored_by=dict.fromkeys(
        ("iox.parquet_files", "iox.delete_predicates", "iox.statistics", "iox.schemas"), "cat.data(TABLE).restore(timestamp=...)"
    ),
    collects={"iox.parquet_files": IN_CATALOG, "iox.delete_predicates": IN_CATALOG},
)
