"""
Request handlers, one module per API or small family of APIs.

``requests.registry`` knows which module has which.

A handler takes the decoded request and a ``RequestContext`` and does one of five things:

* returns its response: it is written at once, without a task. What a plain ``def`` does that never
  has to wait, and what the path of a batch is made of;
* returns ``None``: there is no answer (Produce with ``acks=0``);
* returns a ``Delayed`` (``purgatory.py``): all that the request changes is done, only the answer
  has to wait. The connection goes on with its next request and keeps the answers in order;
* is a generator, whose last word is one of the above: it yields wherever others may come between
  (``turns.py``). What does something for each entry of a request, or for each topic, group or
  transaction there is; an answer with few entries is as quick as from a plain ``def``;
* is an ``async def``: a task is made, and the next request of the same connection starts only when
  it has ended, as in Kafka, which takes one request of a connection at a time.

It may raise ``KafkaError`` (answered with its code in the error slots of that API) at any point.
Every other exception is answered with UNKNOWN_SERVER_ERROR and logged.
"""
