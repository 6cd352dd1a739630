"""The log: timelines of transactions in the store, how they are read into a view, and how a writer adds to one.

Before it come the store and the codec; after it the replay, which is given facts and knows no files.
"""
