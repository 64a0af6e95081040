"""
The sentences of ``barnabas explain``.

Each module makes sentences of the facts that one module of ``explain`` finds. A sentence is short
and has the numbers that a rule compares: exact ones, and those of settings with units as well.
"""
