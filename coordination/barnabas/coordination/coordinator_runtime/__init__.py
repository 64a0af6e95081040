"""
The parts that all coordinators are made of (Kafka's ``coordinator-common``): results, timers,
budgets of memory, the replay of records.
"""
