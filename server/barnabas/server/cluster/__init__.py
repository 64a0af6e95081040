"""
The metadata log of the cluster, and the controller that alone writes to it.

``metadata_log`` stores and replays the records, and keeps their sum, the image of
``barnabas.coordination.cluster``. ``formatting`` prepares the directories of a new cluster. Apache
Kafka in KRaft mode can open the files as its own.
"""
