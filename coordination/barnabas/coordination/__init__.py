"""
The coordinators and the metadata of the cluster, without I/O: what a request changes and what is
answered, decided from the state, the request and the time alone.

A function here is given the time, takes no lock and waits for nothing. One that may be long is a
coroutine with checkpoints (``steps``). The server appends the records that are decided here to the
logs, and applies them.
"""
