"""What only a maintainer does: restore, clone, repair, prune, collect, verify.

Before it come queries, by which it looks, and writers, by which it commits; after it the catalog, which offers it.

::

    rebuild      lost checkpoints from their segments
    without      what can be read of a database without checkpoints that cannot be trusted
    broken       which checkpoints cannot be trusted, and what is lost with them
    evidence     what a walk has found about single transactions, in order, for however many are asked about
    setting_aside  which files can be set aside or taken in again, and what is said of them
    remedies     what is to be done about damage, decided before anything is written
    repair       doing it
    revert       the events that make live rows what they were
    holding      what a tag alone keeps of a past cut, kept while it is put again
    restore      a table, or a part of it, as it was at another cut, in one transaction
    retire       says that writers have ended
    clone        the state of a cut in another store
    retention    what a database has in the store, and which checkpoint becomes the horizon
    verdict      which files go behind it, and what keeps the others
    prune        publishes horizons, and deletes what was published long enough ago
    compactor    when a checkpoint is due, and a compaction that goes on
    gc/          a package: collection: what has ended is forgotten, with its data, once nobody can need it; what a
                 writer has left over is found
    verify/      a package: looking for what is wrong with a catalog: everything is read and nothing is written
"""
