"""What rows are asked for: conditions, however they are given, as key ranges and masks, and as tests that know true, false and unknown.

Before it comes the model, whose columns conditions are about; after it states, which leave out what no condition can meet.

::

    conditions    conditions as key ranges and masks
    timed         text for times in conditions, parsed once
    phrases       what a condition that is written as text says, as a tree
    grammar       such text parsed
    truth         tests of rows that know true, false and unknown
    binding       phrases on columns of known types as tests
    implied       what a test demands of single columns
    expressions   what is recognised of an expression of pyarrow
    given         conditions as users give them: mappings, text, expressions
"""
