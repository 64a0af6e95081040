"""
Regular expressions that clients send, matched in linear time.

The dialect is that of Kafka's brokers, which use RE2/J: it has neither lookaround nor references to
groups, so that no pattern needs backtracking. Python's own engine backtracks, and needs years for
some patterns. RE2 for Python (google-re2 1.1.20251105) has no wheels for Alpine and other systems
with musl, no types, and takes 0.1 s to import; this engine serves every platform instead.

::

    pattern --parser--> program --+
                                  |  set of places in it --character--> set of places
    text -------------------------+

``characters`` has the tests on one character, ``program`` the instructions that the ``parser``
makes of them, ``pattern`` the simulation (Pike's and Thompson's): where in the program a match can
be after each character is a set, so that the work for a character is bounded by the size of the
program, which is bounded too. Only whole texts are matched, and groups capture nothing: greedy and
lazy repetition are the same.
"""
