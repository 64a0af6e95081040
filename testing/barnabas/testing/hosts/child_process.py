"""
The process of a ``ChildHost``: it does what it is asked for until its pipe is closed.
"""

from __future__ import annotations

import pickle
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from barnabas.testing.errors import BrokerError
from barnabas.testing.hosts.child import END, Answer, Request
from barnabas.testing.hosts.thread import ThreadHost


def main(descriptor: int) -> None:
    """
    Serve requests that come through the pipe of a *descriptor*, until the last one or its end.
    """
    # Ctrl-C in a terminal ends the test, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe: Connection = Connection(descriptor)
    with suppress(EOFError, OSError):
        host = ThreadHost(pipe.recv())
        while (request := pipe.recv()) != END:
            pipe.send(_answer(host, request))


def _answer(host: ThreadHost, request: Request) -> Answer:
    try:
        result = getattr(host, request.method)(*request.args, **request.options)
    except Exception as error:
        return Answer(None, _picklable(error))
    return Answer(result)


def _picklable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return BrokerError(f"{type(error).__name__}: {error}")
    return error


if __name__ == "__main__":
    main(int(sys.argv[1]))
