"""
What every coordinator needs, whatever it coordinates (Kafka's ``coordinator-common``).

A coordinator has a shard for each partition of its internal topic that this broker leads. The
partition of a key (``partitioning``) has a shard (``shards``), which owns the log of its records
(``partition_log``). The shard's state is the sum of these records (``loading``).
"""
