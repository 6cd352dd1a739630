"""Looking for what is wrong with a catalog: everything is read and nothing is written.

Before ``repair``, which does something about what is found here.

::

    findings       findings, their codes and remedies
    files          what lies below a writer's prefix, and what of it has to be there
    timelines      what follows what, what is gone, whether times rise
    closure        whether what transactions had read is closed
    checkpoints    checkpoints, segments and blocks against themselves and each other
    events         whether the events of a transaction can be read
    deep           checkpoints against what their transactions make
    misfits        rows by definitions that are left out now, held against those that whoever has them knew
    walk           all of that, one finding after the other
    report         that and the comparison of states, the worst first
"""
