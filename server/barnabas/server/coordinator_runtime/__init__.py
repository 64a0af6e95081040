"""
The runtime of all coordinators (Kafka's ``CoordinatorRuntime``).

A coordinator has a shard for each partition of its internal topic that this broker leads
(``shards``). A shard owns the log of its records (``partition_log``), and a state of
``barnabas.coordination`` that is the sum of these records. The log is replayed (``loading``) before
the shard takes requests.
"""
