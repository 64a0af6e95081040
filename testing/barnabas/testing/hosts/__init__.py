"""
Where a broker runs: in a thread of the test's process, or in a process of its own.
"""
