"""
Values of records that were written with a schema registry, as typed columns.

``registry`` fetches schemas, ``frames`` finds the schema of each value, ``avro``, ``protobuf`` and
``json_schema`` read the values of one schema as a column of Arrow, ``decoding`` puts these
together, and ``from_registry`` is what Spark's users call.
"""
