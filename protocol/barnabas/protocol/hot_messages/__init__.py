"""
The codec of Produce, Fetch and ListOffsets, written by hand and compiled.

``codec`` finds a hot codec by the name of its message. It reads requests and writes responses as
the general codec does, byte for byte, and leaves what it refuses to that one.
"""
