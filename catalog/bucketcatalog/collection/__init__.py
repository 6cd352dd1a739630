"""Collection: what has ended is forgotten, with its data, once nobody can need it; what a writer has left over is found.

After a writer, which commits what is done here, and before the catalog, which offers it. ``judging`` says which versions are candidates and
which data is needed, ``collecting`` does it in one process; the jobs on Spark do the same with the same functions.
"""
