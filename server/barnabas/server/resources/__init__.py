"""
What the process uses of the machine: memory, descriptors, and the collector of cycles.
"""
