"""
Disks in memory, in place of a real one.

* ``memory``: a disk without faults.
* ``failing``: a disk that fails at a chosen operation.
* ``crashable``: the disk of a machine that crashes at a chosen operation, and keeps any part of the
  bytes that were not synced.
* ``faulty``: one that does all of this.
"""
