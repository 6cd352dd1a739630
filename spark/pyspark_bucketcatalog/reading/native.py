"""Native files as a DataFrame: Spark's own Parquet reader, with its pruned columns and pushed filters, and rows left out by position.

What is left out of the files is an array of bits, in which a file's begin at a place that its size tells: that is a number, and constant
throughout the file, where its name would have to be compared for each row. Files of equal size are in scans of their own. The array is what
a subquery gives, so that what leaves rows out is a condition of the scan itself, before those of a query: none is asked of a row that is
left out, as it would be below a join, and may fail on it. Nothing of a session's settings decides what is read: whatever could change an
answer is said here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import DataType

from bucketcatalog.format.shown import Shown
from bucketcatalog.query.files import Asked, NativeFile, alike, stand_in
from bucketcatalog.where.conditions import Between, Prefix

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
_WORD = 64


class NotRead(Exception):
    """Spark cannot read files as they have to be read; says why."""


def native_frame(spark: SparkSession, files: Sequence[NativeFile], root: str) -> DataFrame:
    """The rows of native files below ``root``, of which there is one, that meet the conditions and are not left out.

    ``NotRead`` where Spark does not read them: it is asked for the size of each, by which it leaves rows out, and to read one.
    """
    scans = [some for each in alike(files) for some in _scans(each)]
    try:
        read = [_parquet(spark, some, root) for some in scans]
        listed = _listed_there(spark, files, root) if _is_remote(spark) else [size for rows in read for size in _listed(rows)]
        _ = read[0].select("_metadata.row_index").schema
        _read_one(spark, files[0], root)
    except Exception as error:  # whatever stands in the way: of the session, the file system, or the store
        raise NotRead(f"Spark does not read {root}: {_said(error)}") from error
    if sorted(listed) != sorted(file.size for file in files):
        raise NotRead(f"the files that Spark reads in {root} have other sizes")
    return reduce(DataFrame.union, [_scan(spark, rows, some) for rows, some in zip(read, scans, strict=True)])


def spark_root(url: str) -> str | None:
    """What Spark calls a store of that URL; None where nobody knows."""
    scheme, is_url, rest = url.partition("://")
    if not is_url:
        return f"file://{url}"
    return f"s3a://{rest}" if scheme in ("s3", "s3a") else url if scheme == "file" else None


def _said(error: Exception) -> str:
    """What an error says, in a line: one of the JVM's is wrapped in words about the call."""
    cause = getattr(error, "java_exception", None)
    text = str(error) if cause is None else str(cause.toString())
    lines = [
        line for line in map(str.strip, text.splitlines()) if line and not line.startswith("An error occurred while calling")
    ]
    return lines[0] if lines else type(error).__name__


def _is_remote(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, which has no JVM here."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _listed(rows: DataFrame) -> list[int]:
    """The sizes of the files of a scan as its own listing has them. A job would ask for them again, and a session's first takes seconds."""
    listed = rows._jdf.queryExecution().analyzed().relation().location().allFiles()
    return [listed.apply(at).getLen() for at in range(listed.length())]


def _listed_there(spark: SparkSession, files: Sequence[NativeFile], root: str) -> list[int]:
    """The sizes of the files as the server finds them."""
    places = [_place(root, file) for file in files]
    return [row.length for row in spark.read.format("binaryFile").options(**_OF_PATHS).load(places).select("length").collect()]


def _read_one(spark: SparkSession, file: NativeFile, root: str) -> None:
    """Read from a file, where the rows will be read: by this session's driver, or by its server."""
    if _is_remote(spark):
        _parquet(spark, [file], root).limit(1).collect()
        return
    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(_place(root, file))  # type: ignore[union-attr]
    stream = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).open(path)
    stream.read()
    stream.close()


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


def _scan(spark: SparkSession, rows: DataFrame, files: Sequence[NativeFile]) -> DataFrame:
    """What is shown of the rows that are read of files, of which all are left out in some way or none."""
    made, asked = files[0].columns, files[0].asked
    if len(files[0].left_out):
        rows = rows.where(~_is_left_out(spark, files))
    kinds = {field.name: field.dataType for field in spark_schema(asked.every).fields}
    for name in asked.where:
        rows = rows.where(_meets(_column(made[name], kinds[name]), asked, name))
    return rows.select(*(_column(made[name], kinds[name]).alias(name) for name in asked.schema.names))


def _parquet(spark: SparkSession, files: Sequence[NativeFile], root: str) -> DataFrame:
    """The stored columns that the files have of those that are needed, of all of their rows."""
    stored = spark_schema(pa.schema(list(files[0].stored_fields)))
    return spark.read.schema(stored).options(**_OPTIONS).parquet(*(_place(root, file) for file in files))


def _place(root: str, file: NativeFile) -> str:
    return f"{root.rstrip('/')}/{file.name}"


def _is_left_out(spark: SparkSession, files: Sequence[NativeFile]) -> Column:
    """Whether a row is left out of its file, of which no two are of one size: its bit in numbers of 64, the first row's the lowest."""
    words, starts = list[np.ndarray](), list[tuple[int, int]]()
    for file in sorted(files, key=lambda file: file.size):
        starts.append((file.size, sum(map(len, words))))
        bits = np.zeros(-(-file.rows // _WORD) * _WORD, dtype=np.uint8)
        bits[file.left_out] = 1
        words.append(np.packbits(bits, bitorder="little").view("<i8"))
    array = pa.array([np.concatenate(words)], pa.list_(pa.int64()))
    every = spark.createDataFrame(pa.table({"words": array})).scalar()
    row = F.col("_metadata.row_index")
    word = F.get(every, (_start(starts) + F.shiftright(row, 6)).cast("int"))
    return F.call_function("shiftright", word, row.bitwiseAND(_WORD - 1).cast("int")).bitwiseAND(1) == 1


def _start(starts: Sequence[tuple[int, int]]) -> Column:
    """The place at which a row's file begins, of those of each size in their order: halved until one is left."""
    if len(starts) == 1:
        return F.lit(starts[0][1])
    middle = len(starts) // 2
    is_before = F.col("_metadata.file_size") < starts[middle][0]
    return F.when(is_before, _start(starts[:middle])).otherwise(_start(starts[middle:]))


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


def _meets(shown: Column, asked: Asked, name: str) -> Column:
    """Whether a column meets the condition on it."""
    condition, kind = asked.where[name], asked.tested.field(name).type
    if condition is None:
        return shown.isNull()
    if isinstance(condition, Prefix):
        text = condition.text
        raw = text.encode() if isinstance(text, str) and not pa.types.is_string(kind) else text
        return shown.startswith(F.lit(raw))
    values = asked.compared[name]
    if isinstance(condition, Between):
        low, high = map(_literal, values)
        ends = [] if low is None else [shown > low if condition.above else shown >= low]
        ends += [] if high is None else [shown < high if condition.below else shown <= high]
        return reduce(and_, ends, shown.isNotNull())
    named = [literal for literal in map(_literal, values) if literal is not None]
    found = shown.isin(named) if named else F.lit(False)
    return found | shown.isNull() if values.null_count else found


def _literal(value: pa.Scalar) -> Column | None:
    """A value that a column is compared with, None for null. Times are numbers: Spark's client knows no time before the year 1582 well."""
    if not value.is_valid:
        return None
    if pa.types.is_timestamp(value.type) and value.type.tz is None:
        return F.lit(value.cast(pa.timestamp("us")).as_py().isoformat(sep=" ")).cast("timestamp_ntz")
    if pa.types.is_timestamp(value.type):
        return F.timestamp_micros(F.lit(value.cast(pa.timestamp("us", value.type.tz)).value))
    return F.lit(Decimal(value.as_py()) if value.type == pa.uint64() else value.as_py())  # which no long of Java's holds
