"""Benchmarks against peers: every number is a ratio of things measured in one run, on one machine, in turns.

``run`` is what ``make bench`` calls. ``dataset`` makes the rows, ``world`` keeps what several groups build on, ``measuring`` times and
``results`` holds what came out. ``ours`` and ``peer`` are what the two systems do, much of it in processes of its own (``fresh``). One
module a group: ``commits``, ``upserts``, ``reads``, ``spark_reads``, ``native_reads``, ``harvest``, ``memory`` and others.
"""
