"""
The assignors of Apache Kafka's group coordinator: ``range`` and ``uniform`` for consumer groups
(KIP-848), ``simple`` for share groups (KIP-932), and ``sticky`` for streams groups (KIP-1071).

They are functions of a group and its topics, without clock or I/O. Each gives what Kafka's class
gives, partition by partition, so that a group which moves from one broker to the other keeps what
it has. To that end they walk in the orders of Java's hash maps (``java_order``).

A coordinator does as Kafka's ``TargetAssignmentBuilder``. It makes specs of the members in
``member_order``, calls ``assign``, and writes a record for each member that has no target yet or
gets another object than its target, in the order of the members, with topics and partitions in the
order of the assignment. It keeps that order: the next assignment depends on it.
"""
