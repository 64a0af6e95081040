"""
The Python interface of a broker in a test, over HTTP: for tests in other languages.

``barnabas serve --test-control`` runs it (``process``). ``api`` is the table of all paths;
each of the other modules has those of one subject, which call ``barnabas.testing.Broker``.
"""
