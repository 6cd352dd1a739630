"""What a table's rows are at a cut: facts of checkpoints and of the tail, folded slice by slice.

Before it comes the log, which says what there is; after it checkpoints, which write a state down, and queries, which show it.

::

    indexes       the blocks of a run in a range, by bisection, and the cache of indexes
    plan          slices of keys and what can hold their rows
    shares        slices that travel to who reads or merges them
    tail          the events that no checkpoint covers, as facts
    keyed         conditions on the key alone
    feed          the events of transactions in parts, and read so many at a time
    fold          facts in, state out
    conflicts     what events contradict each other in
    pre_images    what events ended or replaced, and its rows as they were
    overlay       a folded base and its overlay as one
    read          the state of a slice
    skipping      blocks in which no row can match, by statistics
    contents      the tables of a cut, and the blocks and the tail that each is made from
    untouched     rows of the lowest level that stand in its files as they are, and those to leave out
    sums          exact sums over live rows by group, and the blocks that keep them
    orders        tombstones by when they ended: the blocks that keep the order, and plans narrowed by it
    earliest      the tombstones that ended first, a page of them
    side_runs     what a checkpoint keeps beside rows, whichever kind it is
"""
