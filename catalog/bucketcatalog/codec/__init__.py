"""Bytes to values and back: the only package that imports generated protobuf.

Before it come the store, which moves bytes, and the tables; after it the log and the replay, which know neither protobuf nor IPC.
"""
