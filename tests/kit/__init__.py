"""What the lanes share; it imports none of them.

Worlds whose clock stands still, tables and names as odd as they may be, stores and file systems that misbehave, a real server; chance; what
a catalog is (``reference``), histories on that and on the engine (``machine``), and a reader that knows docs/spec alone (``spec_reader``).
"""
