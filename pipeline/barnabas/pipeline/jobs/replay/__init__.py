"""
An archive back into a topic: key, value, headers, timestamp and order of each record as they were.

Each partition is sent by a transactional producer of its own, which commits its progress with the
records, as an offset of a group. So a run that was killed has neither lost nor doubled anything
when the next one continues, and a worker that still sends for it is fenced off. Consumers of the
topic should read committed records only.

::

    one partition     sending.py    in a worker
    all of them       job.py        a task for each
    barnabas spark    command.py
"""
