"""
What retention will delete before a group has read it.

::

    commits     the pace of a group, by its committed offsets
    deletions   when retention deletes each segment, by the rules and the rate of production
    forecast    the one held against the other

Pure functions, which a running broker and ``explain`` share. The rules are those of
``log.retention``.
"""
