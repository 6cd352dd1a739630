"""The data source that Spark calls by the name ``bucketcatalog``.

Spark makes it in one process at ``load()``, pickles it, and asks the copy for a reader in another process at the first action. The cut is
fixed in the constructor: ``schema()`` is not called where the user gives a schema.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from .failing import is_sparks, ours_first

if TYPE_CHECKING:
    from bucketcatalog.errors import BucketCatalogError

    from .reading.relation import Relation
    from .reading.streaming import Stream

# The engine is imported in the methods: finding data sources must neither take its time nor fail where it cannot be imported.


class DefaultSource(DataSource):
    """One table of a catalog at one cut, or its change events, or what differs in it, between two.

    ====================  ==========================================================================================
    option                meaning
    ====================  ==========================================================================================
    path                  the catalog; what ``load()`` is given
    database              the database; by default the only one there is
    table                 the table, its tombstones (``deleted_...``) or a table about the catalog; default ``objects``
    columns               only these columns, with commas between; the others are not read
    timestampAsOf         the state at a time: ISO 8601 (without a zone: UTC), ``yesterday``, ``24h``, or ``@`` and microseconds;
                          what counts from now does so at ``load()``
    versionAsOf           the state at a version: a snapshot's, ``writer@N``, or a revision
    bucket                only this bucket's rows; reads no other key range
    owner                 only this owner's rows; needed where several owners have a bucket of that name
    prefix                only names that begin so; with ``bucket`` it reads no other key range
    where                 conditions as JSON: {"name": "a", "size": {">=": 1, "<": 9}, "key": ["a", "b"], "path": {"prefix": "x"}};
                          or as text: name = 'a' and (size > 1 or path like 'x%')
    onSchemaConflict      of data tables: cast, error or skip, for files with different columns
    strict                true: a forked timeline is an error instead of a warning
    ignoreCorruption      true: damaged and missing files are passed over, with a warning; the table ``damage`` lists what is missing
    maxPartitionRows      about the most rows a partition reads, as far as indexes tell; default 1,048,576. However small it is, rows are
                          divided after about every 65,536th and no oftener, and so are events, and between transactions
    readChangeFeed        true: the events of the table instead of its rows
    readDifference        true: the rows that differ between two versions, by key
    preImages             true, or columns with commas between: what each event, or difference, ended or replaced, in ``_before``
    startingVersion       what has changed after this version; without a start, since there was nothing
    startingTimestamp     what has changed after this time
    endingVersion         what has changed up to this version; without an end, up to now
    endingTimestamp       what has changed up to this time
    storage.*             reaches the store. ``true``, ``false`` and JSON objects or lists are read as such; all else is text
    ====================  ==========================================================================================

    Streams and writes have options of their own: ``StreamOptions`` and ``WriteOptions``, docs/guide/streams.md and docs/guide/spark.md.

    Names are case-insensitive; unknown ones are errors. What ``load()`` returns shows the cut of that moment for good, and so does a
    view made by CREATE TEMPORARY VIEW; a table made by CREATE TABLE takes the cut at each query.

    Columns are those of ``columns``, or of a schema given by the user, and may include ``_version``, ``_commit_timestamp``, ``_writer``
    and ``_revision``. Where the user gives a schema Spark makes the data source, which takes the cut, only at the first action.
    """

    @ours_first()
    def __init__(self, options: MutableMapping[str, str]) -> None:
        from bucketcatalog.errors import BucketCatalogError

        from .options import settled_options
        from .sqltables import creates_table, table_options

        super().__init__({})  # the base would keep them for all to read
        self._of_table = table_options(options) if creates_table(options) else None
        given = dict(options) if self._of_table is None else self._of_table
        self._given = given
        self._relation: Relation | None = None
        self._stream: Stream | None = None
        self._why_unread: BucketCatalogError | None = None
        # Without a path this may be a query of a SQL table, whose options come with the columns.
        if "path" in given:
            try:
                self._given = given = settled_options(given)  # Spark may ask for a reader again, later
                self._open_for_either(given)
            except BucketCatalogError as error:  # which is none of a write: Spark does not say yet which it is
                self._why_unread = error

    def _open_for_either(self, given: Mapping[str, str]) -> None:
        """Open what is to be read. Where it may be a stream, which Spark does not say yet, no more is looked at than the table now.

        A stream that began long ago does not mind what has become of its start.
        """
        from .options import may_be_a_stream
        from .reading.relation import open_relation
        from .reading.streaming import open_stream

        if may_be_a_stream(given):
            self._stream = open_stream(given)
        else:
            self._relation = open_relation(given)

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "bucketcatalog"

    @ours_first()
    def schema(self) -> StructType:
        """Every column that is shown without being asked for."""
        from .sqltables import with_options
        from .types import spark_schema

        columns = spark_schema(self._stream.schema if self._stream is not None else self._open({}).schema)
        return columns if self._of_table is None else with_options(columns, self._of_table)

    @ours_first()
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of these columns; ``InvalidOption`` where the table does not have them so."""
        from .reading.reader import make_reader
        from .sqltables import options_of, refuse_options_of_query

        of_columns = options_of(schema)
        if of_columns:
            refuse_options_of_query(self._given)
        return make_reader(self._open(of_columns), schema)

    def _open(self, of_columns: Mapping[str, str]) -> Relation:
        from .options import speaks_of_events
        from .reading.relation import open_relation

        if self._why_unread is not None:
            raise self._why_unread
        if self._relation is not None:
            return self._relation
        # The events of a batch end with what there was at load().
        ends = {} if self._stream is None or not speaks_of_events(self._given) else {"endingVersion": self._stream.version}
        return open_relation({**of_columns, **self._given, **ends})

    @ours_first()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer of rows with these columns, committed as one transaction; a typed error where the table does not take them."""
        from .sqltables import options_of
        from .writing.batch import make_writer

        return make_writer({**options_of(schema), **self._given}, schema, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A reader of the table's events from where the options say; ``InvalidOption`` where it has no such columns."""
        from bucketcatalog.errors import BucketCatalogError

        from .options import refuse_rows
        from .reading.streaming import ChangesStreamReader, RefusedStreamReader, open_stream

        try:
            if self._stream is None:
                refuse_rows(self._given)
            return ChangesStreamReader(self._stream or open_stream(self._given), schema)
        except BucketCatalogError as error:
            if not is_sparks():
                raise
            return RefusedStreamReader(error)

    @ours_first()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """A writer of batches of rows with these columns; a typed error where the table does not take them."""
        from .sqltables import options_of
        from .writing.batch import make_stream_writer

        return make_stream_writer({**options_of(schema), **self._given}, schema, overwrite=overwrite)
