"""Writing: rows of a DataFrame as events of one transaction. Executors put segments, and one process commits."""
