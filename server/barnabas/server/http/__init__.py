"""
HTTP beside the broker: a server on Starlette and uvicorn, which are the extra ``http``.

* ``extra``: says what to install where they are missing.
* ``address``: the address to listen on, and who reaches it.
* ``server``: the server on an event loop.
* ``guard``: which requests it takes: from whom, how large, and how many at a time.
* ``fields``: from JSON, or a query, to a dataclass.
* ``json_api``: a table of operations that take and give JSON.
"""
