"""
``/metrics``: the counters and the state of the broker, in the formats of Prometheus.

* ``families``: the names, with what Apache Kafka and the JMX exporter call them.
* ``exposition``: from samples to text.
* ``counted`` ``requests`` ``logs`` ``groups`` ``process``: where each family is read from.
* ``scrape``: all of them, in turns of the event loop.
* ``endpoint``: the answer, which scrapers share.
"""
