"""Systems that come with the package: each a package of tables, views, operations and commands on top of the engine.

They are found as any other is, by the entry points of the package, and nothing of the engine knows them.

::

    iox/     tables of rows in Parquet files, as IOx's persisted catalog kept them
    manta/   buckets and objects as Manta's metadata service has them (RFD 149)
"""
