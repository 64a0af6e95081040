"""
HTTP beside the broker: a server on Starlette and uvicorn, which are the extra ``http``.

Of every broker with ``barnabas.http.listener``:

* ``listener``: starts the server; ``app`` has its paths, ``observed`` the part of a broker it sees.
* ``health``: the health of the broker, and its readiness.
* ``metrics``: the metrics for Prometheus.
* ``read_only`` and ``bounded``: which requests it takes, how large, how slow, and how many.

Of this and of the control for tests:

* ``extra``: says what to install where they are missing.
* ``address``: the address to listen on, and who reaches it.
* ``server``: the server on an event loop.
* ``guard``: which requests it takes: from whom, how large, and how many at a time.
* ``answers``: answers in JSON.
* ``fields``: from JSON, or a query, to a dataclass.
* ``json_api``: a table of operations that take and give JSON.
"""
