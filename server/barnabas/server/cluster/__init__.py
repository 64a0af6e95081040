"""
The metadata of the cluster: a log of records, and the image that they add up to.

``metadata_log`` keeps the records durable and replays them, ``image`` is their sum, ``lifecycle``
says which records a start and a stop write, ``formatting`` makes a directory that holds a cluster.
The files are those of Apache Kafka's KRaft mode, which opens them as its own.
"""
