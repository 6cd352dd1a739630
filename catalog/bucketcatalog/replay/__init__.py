"""From facts to state: the rules of keyed rows with versions, as functions of values.

Nothing in here reads or writes; before it come the log's tail and the blocks of checkpoints, after it snapshots and scans.
"""
