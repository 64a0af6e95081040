"""
``barnabas graduate``: from this one node to a cluster of Apache Kafka.
"""
