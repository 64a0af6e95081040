"""
The metadata of the cluster: a log of records, and the image that is their sum.

``metadata_log`` stores and replays the records, ``image`` is their sum, ``lifecycle`` has the
records of a start and a stop, ``formatting`` prepares the directories of a new cluster. Apache
Kafka in KRaft mode can open the files as its own.
"""
