"""Collection: what has ended is forgotten, with its data, once nobody can need it; what a writer has left over is found.

Before it come queries and writers, as for all of ``maintain``; after it the catalog, the command line, and the jobs on Spark, which do what
``collect`` does in one process on many, with the same functions.

::

    authority     whose word counts of data in the catalog
    judge         which versions may be forgotten, whose data is needed, what tags pin
    boundaries    how far boundaries reach, when they are waited out, and which ends each has seen
    parents       parents that are live, have ended, or are somebody else's
    data          where data lies, who deletes it, and what came of it
    spaces        which tables can name the same data, and what of references is equal where it is the same
    candidates    candidates as rows, and the anti-join on their data
    collect       one run, in one process, by the boundary of an earlier one
    reap          ends what parents have left behind
    orphans       data that nothing names, and puts that nobody will finish
"""
