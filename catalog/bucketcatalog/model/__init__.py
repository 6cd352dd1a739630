"""What everything else speaks of, as values: between a user's rows and the bytes of files. Nothing in here reads or writes.

Before it come only errors, clocks and limits; everything after it speaks in its words.

::

    names           what writers, databases and tags may be called, and are by default
    cuts            cuts and their text; heads, refs and stamps, which name what stands in a log
    times           times, ages and versions as users write them
    globs           globs as users write them, as regular expressions
    sizes           sizes in bytes as users write them
    public          what tab completion shows of an object
    json_values     values as JSON has them
    html            what a notebook shows: small tables, of which every value is escaped
    arrays          Arrow arrays taken apart and put together
    uuids           uuids between their 16 bytes and their text, one by one and as arrays
    paths           builds and parses every object name
    misfits         writers whose definition of a table does not fit it
    tables          what a table declares, as values
    contradictions  what a table must not declare
    parents         by which columns rows can belong to others
    keys            keys as bytes, one by one and as arrays, and back to values
    bloom           Bloom filters over keys, and the hash that they are made of
    row_hashes      hashes of rows by all of their values
    allowed         values that a table's declaration does not allow
    widening        types that hold the values of two others, and columns cast to them
    coerce          values and columns of users in storage form, checked
    facts           the one relation that events and state share, also sorted with its keys
    events          events, and how each becomes a fact
    render          facts as people see them
"""
