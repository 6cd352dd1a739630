"""Answers: snapshots, scans, listings, changes, and tables about the catalog itself.

Before it comes the state; after it whoever asks: the catalog, the command line, Spark.

::

    damage           what is missing of a snapshot
    in_html          snapshots, reads and plans as a notebook shows them
    row_tests        conditions on columns that no table declares
    parquet_filters  Bloom filters as Parquet has them
    parquet_footers  footers of anybody's Parquet files, checked before a library is asked about their columns
    files            a read as native files and what lies over them
    in_duckdb        a read as a relation of DuckDB, which reads the files itself
    in_polars        a read as a LazyFrame of Polars, which reads the files itself
    in_files         a read as files of this machine
    reads            what anybody can be given: rows in batches, at once, in tasks, as files
    filtered         reads whose rows are tested once more
    scan             a table as Arrow data, slice by slice or in tasks for other processes
    looked_up        reads with columns that other rows or the log tell
    named            whose rows a name means, and what their bucket is called
    operations       operations and metadata of the transactions that rows are of
    commits          every commit, and what it says that it has done
    metadata         tables about the catalog itself
    listing          pages of names below a prefix, with groups
    snapshot         one cut, read as often as one likes, and the seam to who else answers for names that are no tables
    blame            whose fault it was: what is wrong with a system, and what its code raises
    views            rows of a table under other names
    info             what a database is, how well it is kept, what needs doing
    members          several catalogs asked as one
    side_by_side     several catalogs as one: the rows of each, one below the other
    events           events of a table as they are asked for, shown, and read in parts
    pre_images       events with what they ended or replaced
    changes          every event between two cuts
    difference       the net difference of two cuts
    seen             what a process has read of a database
    database         a database as this process knows it: its log, its tables, and what has been read of it
    following        what lies between a cut that a reader has reached and now, in portions that are cuts
"""
