"""Every file of the catalog between bytes and values. The only package that imports generated protobuf; it reads and writes nothing.

Before it come the model, whose values it encodes; after it the log, which knows neither protobuf nor IPC.

::

    sealing         checksums, format versions, features; where fields lie in a message, and a message in a damaged file
    bounds          what a message may say at most, and which names, revisions, times and uuids are any
    records         the small values that transactions and checkpoints both carry
    thrift          Thrift's compact protocol, in which Parquet writes its headers
    footers         where a file's footer lies, whether it is the one that was meant, and which columns there are
    pages           what decoding a chunk would take, by the headers of its pages
    statistics      what the index says of the values of chunks
    expanding       dictionaries to values, where these are not too large, and text that is UTF-8
    parquet         the column chunks of row groups that are needed, each checked before it is decoded
    encoding        rows as row groups: how each column is encoded
    headers         what is said of stored rows: table, class, ranges, place
    columns         the columns of stored rows, by names and field ids, from facts and back
    shown           stored columns as engines show them that read files by themselves
    exported        rows as people see them, as Parquet can hold them
    texts           rows as people see them, as lines of JSON and as CSV can hold them
    checking        what rows must be before they count as facts
    sizes           how large rows, row groups and indexes may be that are written
    streams         what reading an Arrow stream would take, by what it says of itself
    blocks          facts as blocks of a message, and what any block that was read holds
    runs            runs as checkpoints have them, in segments or inline
    held            what a file, or a part of one, holds: in errors, findings and losses alike
    extents         how large a table is by its descriptors
    definitions     tables from descriptors, and definitions for the log
    reserved        what a message reserves: numbers and names of fields that were removed
    evolution       two definitions of a table as one
    arrow_types     which column a type of Arrow makes
    proto_text      a .proto as text
    compiled        compiled .proto files as compilers write them down
    wanted          what a user wants of a table, against the columns that it has
    checks          what writers check of a table that is made of a schema
    schemas         tables from schemas of Arrow, with the numbers that they have
    authority       who decides what a table is, and what is left out of it
    segments        Parquet files of one run, with filters and an index before the footer
    rows            single rows as messages
    transactions    transactions between bytes and values
    checkpoints     checkpoints between bytes and values
    losses          what a reader that reads on has lost
    dump            what any file holds, damaged or not
"""
