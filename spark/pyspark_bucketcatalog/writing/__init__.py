"""Writing: rows of a DataFrame as events of one transaction. Executors put segments, and one process commits.

::

    write     a write of rows: tasks put segments, one commit names them
    changing  ``delete`` and ``update``: rows that a condition is true of, at the versions that it saw
    parts     rows for names that are no tables: parts, and the commit that names them
    batch     Spark's writers, of a batch and of a stream's batches
"""
