"""Files of one writer made wrong at random, and whether anybody else notices: by what can be forged below one prefix, sums right.

::

    base      a small catalog with everything in it, and what has to be seen of it whatever one of its writers says
    fields    any field of any message, changed
    streams   rows of a block, changed within Arrow's stream
    forge     a file taken apart, changed somewhere and put together again with all sums right; what names it, made to fit
    readers   every command and call that reads
    decoding  the files decoded one by one, which is quick
    oracle    what each of them may answer
    child     the process in which all that happens
    running   the process that watches it
"""
