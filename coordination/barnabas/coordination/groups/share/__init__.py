"""
The members of share groups, and what a group knows of the states of its partitions (KIP-932).

The records that members acquire are in ``barnabas.coordination.share``.
"""
