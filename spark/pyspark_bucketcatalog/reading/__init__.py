"""Reading: a relation planned once at cuts that stay, its partitions, and Spark's readers.

It is not called ``read``: importing a package of that name would hide the function.

::

    conditions    ``bucket``, ``owner`` and ``prefix`` as conditions
    relation      what is read, at cuts fixed at ``load()``
    reader        Spark's reader: a read's tasks as partitions
    streaming     a stream of change events: offsets that are cuts, and what lies between two
    native        native files as a DataFrame of Spark's own Parquet reader
    frames        DataFrames of a read: natively, local, or by tasks
    side_by_side  frames of several catalogs, one below the other
"""
