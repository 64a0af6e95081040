"""
Checkers that watch every broker that a test starts, and fail the test when a rule is broken.

::

    conftest ----> hook: when barnabas.server.broker is imported, here or in a process below
                     |
                     v
    Broker.start     Watch: one per broker
                     |-- positions     high watermark, last stable offset, log start, leader epoch
                     |-- acknowledged  batches that producers got an offset for
                     |-- groups        committed offsets, epochs of groups
                     |-- stored        batches and index entries in the files
                     |-- resources     what is open or waits when the broker has stopped
                     v
    findings ------> pytest: the test that ran is reported as failed

The product knows nothing of them: ``attaching`` wraps three methods of ``Broker``, which is not
compiled, and the few handlers whose requests a rule needs.
"""
