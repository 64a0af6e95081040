"""
An archive back into a topic: key, value, headers, timestamp and order of each record as they were.

Each partition is sent by a transactional producer of its own, and how far it is, is committed with
the records, as an offset of a group. So a run that was killed has neither lost nor doubled anything
when the next one goes on; and whoever still sends for it is fenced off. Who reads the topic should
be reading committed records only.

::

    one partition     sending.py    in a worker
    all of them       job.py        a task for each
    barnabas spark    command.py
"""
