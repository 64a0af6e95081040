"""
The assignors of Apache Kafka's group coordinator: ``range`` and ``uniform`` for consumer groups
(KIP-848), ``simple`` for share groups (KIP-932), and ``sticky`` for streams groups (KIP-1071).

They are functions of a group and its topics, without clock or I/O. Each gives what Kafka's class
gives, partition by partition, so that a group which moves from one broker to the other keeps what
it has. To that end they walk in the orders of Java's hash maps (``java_order``).
"""
