"""
Request handlers, one module per API or small family of APIs.

``requests.registry`` knows which module has which.

A handler translates: it asks for permissions, reads the request, calls, and builds the answer. What
is decided, and in which order, is in the package of the subject: ``produce``, ``fetch``, ``share``,
``topics``, ``transactions``, ``groups``, ``cluster``.

A handler is an ``async def name(request, context)`` that returns its response. It is written at
once, without a task, if the handler ends without having to wait. That of Produce is a plain
function, for speed; it returns a coroutine where it has to wait. A handler awaits

* ``checkpoint()`` wherever others may come between (``turns.py``): what does something for each
  entry of a request, or for each topic, group or transaction there is;
* futures. The next request of the same connection starts only when the handler has ended, as in
  Kafka, which takes one request of a connection at a time, or when it calls
  ``context.effects_done``: all that the request changes is done, only the answer has to wait. The
  connection goes on with its next request and keeps the answers in order.

It may raise ``KafkaError`` (answered with its code in the error slots of that API) at any point.
Every other exception is answered with UNKNOWN_SERVER_ERROR and logged.
"""
