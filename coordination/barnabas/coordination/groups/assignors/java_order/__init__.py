"""
The orders in which Java's collections give out what they hold.

Kafka's assignors walk over hash maps, so what they assign depends on hash codes, on the sizes of
tables, and on what was put into them first. Here are the parts of ``java.util`` that such a walk
needs, and Kafka's own ``TimelineHashMap``.
"""
