"""Rows in, one PUT out.

Rows come from users and harvests; after it come maintainers, who commit by it what they do.

::

    given          the rows of a call in storage form, with the versions that they name: as rows, or as columns
    intake         what users give, dicts or Arrow data, checked against its table, as that
    staging        a transaction's events, held as facts or written as segments, and what they leave of a key
    derived_ids    ids that are derived
    targets        which version an update, delete or purge is about
    references     data references as bytes and as text, and who may name data again
    parents        parents that have to exist
    naming         names of what rows belong to as its ids
    data_paths     paths of data that lies in the catalog
    draft          the events of a transaction, checked and numbered
    tags           what has to be said of a tag, if anything
    pins           what has to be said of a pin, if anything
    commit         what one commit is to say, whoever wants it said, and the transaction that it becomes
    declaring      what has to be said of tables, and tables that are made of schemas
    transaction    one transaction as its user fills it
    shares         rows of a table that several processes write, named in one commit
    parts          rows of names that are no tables: written as parts by who takes them, named in one commit
    host_turn      turns of the processes of one machine under the writers that are called after it
    committer      a timeline held open, and its transactions published one after the other
    writer         what a writer can say, and checkpoints
"""
