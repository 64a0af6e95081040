"""
Commands for people: ``barnabas topics``, ``produce``, ``consume`` and ``groups``.

They work with any Kafka broker. Standard output has the result, as a table or with ``--json`` as
JSON; notes, progress and errors are on standard error.
"""
