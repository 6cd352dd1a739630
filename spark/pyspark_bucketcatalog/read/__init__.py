"""Reading: a relation planned once at cuts that stay, its partitions, and Spark's readers.

::

    conditions    ``bucket``, ``owner`` and ``prefix`` as conditions
    relation      what is read, at cuts fixed at ``load()``
    reader        Spark's reader: a read's tasks as partitions
"""
