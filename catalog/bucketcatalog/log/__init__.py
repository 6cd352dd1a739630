"""Which files make a cut: timelines of transactions in the store, read into a log view, and how a writer adds to one.

Before it come the store and the format; after it the state, which is given log views and knows no timelines.

::

    blocks       blocks in the store, read by range, and some kept for a while
    segments     segments in the store: indexes and filters by range, files put when full
    trust        what counts from whom
    aside        what is set aside, which entry counts, and what stands in for such a transaction
    files        reads transactions and checkpoints, each checked against its name
    entries      what transactions say of the catalog itself, and which of it counts
    pins         which writer needs the history after which cut, and which of these pins hold it
    witnesses    which definitions had been read, and by when; the tables of a view, and of a checkpoint alone
    horizon      the cut before which history may have been deleted
    coverage     which transactions the chosen checkpoints cover
    awareness    getting to know what is set aside, before anything is decoded that may be
    view         a causally closed cut, its checkpoints and its tail
    discovery    the cut of now or of a time, by listing
    pruned       what pruning leaves: what to say of a file that is gone, and what stays for tags
    ancestry     the cut that a version names, completed
    between      the transactions from one cut back to another
    salvage      the log with stand-ins for what cannot be read
    timeline     a writer's own timeline: parents, commit times, publishing, foreign branches
    versions     which cut a time, a version or a tag names
"""
