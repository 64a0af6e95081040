"""
Forecasts for the groups of a running broker.

::

    positions   where each group is, by its committed offsets or the state of its share-partitions
    forecasts   rounds that follow the positions, and foresee what is deleted unread
    warnings    one line in the log for each group and partition that will lose records

The rule is ``storage.forecast``.
"""
