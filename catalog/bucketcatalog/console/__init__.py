"""How a command line runs and prints, whoever's commands they are.

After the catalog, for which it has options; before ``cli``, the commands of this package, and those of Spark's jobs. Of it users import
``progress``, for notebooks and programs of their own.

::

    output      the one place that prints: tables and facts for people, JSON and CSV for programs
    answers     answers to questions, in each of these forms
    findings    what verifying finds, a line each, and an error where there is one among it
    progress    how far long work is, for whoever watches: a terminal, a notebook, nobody
    options     options that several commands have
    app         runs a command, and turns what ends it into an exit code
"""
