"""Native files as a DataFrame: Spark's own Parquet reader, with its pruned columns and pushed filters, and rows left out by position.

What is left out of a file is an array of bits, joined to its rows by the file's size: that is a number, and constant throughout the file,
where its name would have to be hashed for each row. Files of equal size are in scans of their own. Nothing of a session's settings decides
what is read: whatever could change an answer is said here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import DataType

from bucketcatalog.format.shown import Shown
from bucketcatalog.query.files import NativeFile, alike, stand_in
from bucketcatalog.state.conditions import Prefix, listed

from ..types import quoted, spark_schema

_OF_PATHS = {
    "recursiveFileLookup": "true",  # no directory of a path is taken for a partition
    "__globPaths__": "false",  # a path is a path, whatever characters it has
}
_OPTIONS = _OF_PATHS | {
    "datetimeRebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "mergeSchema": "false",
    # Rows are chosen by what is checked alone: none of these is, dictionaries not either while they are no more than looked into.
    "parquet.filter.bloom.enabled": "false",
    "parquet.filter.columnindex.enabled": "false",
    "parquet.filter.dictionary.enabled": "false",
    "parquet.page.verify-checksum.enabled": "true",
}
_SIZE, _ROW, _BITS, _OF = "__size", "__row", "__bits", "__of"  # no column of a file is called so
_WORD = 64


def native_frame(spark: SparkSession, files: Sequence[NativeFile], root: str) -> DataFrame:
    """The rows of native files, of which there is one, that meet the conditions and are not left out."""
    frames = [_scan(spark, some, root) for each in alike(files) for some in _scans(each)]
    return reduce(DataFrame.union, frames)


def spark_root(url: str) -> str | None:
    """What Spark calls a store of that URL; None where nobody knows."""
    scheme, is_url, rest = url.partition("://")
    if not is_url:
        return f"file://{url}"
    return f"s3a://{rest}" if scheme in ("s3", "s3a") else url if scheme == "file" else None


def why_unread(spark: SparkSession, files: Sequence[NativeFile], root: str) -> str | None:
    """Why Spark cannot read the files below ``root``; None where it can.

    It is asked for the size of each, by which it would otherwise leave rows out, and to read one.
    """
    try:
        rows = _parquet(spark, files, root)
        sizes = _sizes_there(spark, files, root) if _is_remote(spark) else _sizes(spark, rows, _place(root, files[0]))
        _ = rows.select("_metadata.row_index").schema
    except Exception as error:  # whatever stands in the way: of the session, the file system, or the store
        return f"Spark does not read {root}: {str(error).strip().splitlines()[0]}"
    if sorted(sizes) != sorted(file.size for file in files):
        return f"the files that Spark reads in {root} have other sizes"
    return None


def _is_remote(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, which has no JVM here."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _sizes(spark: SparkSession, rows: DataFrame, first: str) -> list[int]:
    """The sizes of the files of a frame as its own listing has them. A job would ask for them too, and a session's first takes seconds."""
    context = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(first)  # type: ignore[union-attr]
    stream = path.getFileSystem(context._jsc.hadoopConfiguration()).open(path)
    stream.read()
    stream.close()
    listed = rows._jdf.queryExecution().analyzed().relation().location().allFiles()
    return [listed.apply(at).getLen() for at in range(listed.length())]


def _sizes_there(spark: SparkSession, files: Sequence[NativeFile], root: str) -> list[int]:
    """The sizes of the files as the server finds them; the first is read there."""
    places = [_place(root, file) for file in files]
    listed = spark.read.format("binaryFile").options(**_OF_PATHS).load(places).select("length").collect()
    _parquet(spark, files[:1], root).limit(1).collect()
    return [row.length for row in listed]


def _scans(files: Sequence[NativeFile]) -> Iterator[list[NativeFile]]:
    """The files in one scan of those that are read whole, and others of which no two have files of one size."""
    whole = [file for file in files if not len(file.left_out)]
    if whole:
        yield whole
    seen: Counter[int] = Counter()
    scans: list[list[NativeFile]] = []
    for file in files:
        if len(file.left_out):
            if seen[file.size] == len(scans):
                scans.append([])
            scans[seen[file.size]].append(file)
            seen[file.size] += 1
    yield from scans


def _scan(spark: SparkSession, files: Sequence[NativeFile], root: str) -> DataFrame:
    made, asked = files[0].columns, files[0].asked
    rows = _parquet(spark, files, root)
    if len(files[0].left_out):
        rows = rows.withColumns({_SIZE: F.col("_metadata.file_size"), _ROW: F.col("_metadata.row_index")})
        left_out = F.broadcast(_left_out(spark, files))
        bit = F.expr(f"shiftright(get({_BITS}, cast(shiftright({_ROW}, 6) as int)), cast({_ROW} & 63 as int)) & 1")
        rows = rows.join(left_out, F.col(_SIZE) == F.col(_OF)).where(bit == 0)
    kinds = {field.name: field.dataType for field in spark_schema(asked.every).fields}
    for name, condition in asked.where.items():
        rows = rows.where(_meets(_column(made[name], kinds[name]), condition))
    return rows.select(*(_column(made[name], kinds[name]).alias(name) for name in asked.schema.names))


def _parquet(spark: SparkSession, files: Sequence[NativeFile], root: str) -> DataFrame:
    """The stored columns that the files have of those that are needed, of all of their rows."""
    stored = spark_schema(pa.schema(list(files[0].stored_fields)))
    return spark.read.schema(stored).options(**_OPTIONS).parquet(*(_place(root, file) for file in files))


def _place(root: str, file: NativeFile) -> str:
    return f"{root.rstrip('/')}/{file.name}"


def _left_out(spark: SparkSession, files: Sequence[NativeFile]) -> DataFrame:
    """For each file, by its size, which rows are left out: 64 a number, the first the lowest bit."""
    bits = []
    for file in files:
        of_rows = np.zeros(-(-file.rows // _WORD) * _WORD, dtype=np.uint8)
        of_rows[file.left_out] = 1
        bits.append(np.packbits(of_rows, bitorder="little").view("<i8"))
    rows = pa.table({_OF: pa.array([file.size for file in files], pa.int64()), _BITS: pa.array(bits, pa.list_(pa.int64()))})
    return spark.createDataFrame(rows)


def _column(made: Shown, kind: DataType) -> Column:
    """A column as people see it, made of stored ones."""
    columns = [F.col(quoted(name)) for name in made.stored]
    if made.is_joined:
        return F.concat(columns[0], *(part for column in columns[1:] for part in (F.lit(":"), column.cast("string"))))
    if made.otherwise is not None:
        columns.append(F.lit(stand_in(made)))
    value = F.coalesce(*columns) if len(columns) > 1 else columns[0] if columns else F.lit(None)
    if made.symbols:
        value = _symbols(value, made.symbols)
    return value.cast(kind)  # which Spark leaves out where it is of that type


def _symbols(number: Column, symbols: Sequence[tuple[int, str]]) -> Column:
    (first, name), *others = symbols
    cases = F.when(number == first, name)
    for other, name in others:
        cases = cases.when(number == other, name)
    return cases.otherwise(number.cast("string"))


def _meets(column: Column, condition: Any) -> Column:
    """Whether a column meets what the options bucket, owner and prefix demand: a value, one of several, or that it begins so."""
    if isinstance(condition, Prefix):
        assert isinstance(condition.text, str)
        return column.startswith(condition.text)
    return column.isin(list(listed(condition)))
