"""That state written down, level by level.

Before it comes the state that it writes, level by level; after it writers, who publish it, and Spark's jobs, which merge on executors.

::

    merge      levels in, segments of their fold out, task by task
    covering   what a checkpoint says that it covers
    retiring   which writers have ended, and of which nothing can arrive any more
    plan       what a checkpoint starts from, which levels it merges
    publish    what was decided and what its tasks wrote, as a checkpoint in the store
"""
