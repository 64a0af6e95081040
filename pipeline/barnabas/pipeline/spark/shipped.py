"""
What Spark ships to an executor, readable there without Barnabas, up to the sentence that says so.

PySpark pickles the reader, the writer and the functions of a query. An executor whose Python lacks
Barnabas cannot load them, and the query would end with a traceback of cloudpickle. So they are
pickled inside of a function that goes along as code, and that names the Python and the host.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from pyspark import cloudpickle

_T = TypeVar("_T")


def unpickled(pickled: bytes) -> Any:
    """
    Runs in an executor, by its code alone, which imports what it uses.

    Raises:
        RuntimeError: a package is missing there. Its name is one of ``barnabas.pipeline.errors``,
            although that cannot be imported: only its text comes to the driver.
    """
    import os  # noqa: PLC0415  # see above
    import pickle  # noqa: PLC0415  # see above
    import socket  # noqa: PLC0415  # see above
    import sys  # noqa: PLC0415  # see above

    try:
        return pickle.loads(pickled)  # from the driver, as is this function itself
    except ModuleNotFoundError as error:
        sentence = (
            f"The Python of this executor, {sys.executable} on {socket.gethostname()}, has no"
            f" package {error.name}: ship the environment, docs/spark-cluster.md."
        )
        # PySpark asks for it when it writes down why the task failed.
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        named = {"__module__": "barnabas.pipeline.errors"}
        raise type("PackageMissing", (RuntimeError,), named)(sentence) from None


def called(pickled: bytes, *arguments: Any) -> Any:
    """
    Call the function that is pickled.
    """
    return unpickled(pickled)(*arguments)


def rebuilt(pickled: bytes) -> Any:
    """
    The object whose class and attributes are pickled.
    """
    kind, attributes = unpickled(pickled)
    whole = object.__new__(kind)
    whole.__dict__.update(attributes)
    return whole


def shipped(function: Callable[..., _T]) -> Callable[..., _T]:
    """
    The same *function*, for Spark to ship.
    """
    return partial(called, _pickled(function))


class Shipped:
    """
    The base of objects that Spark ships.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (_pickled((type(self), self.__dict__)),)


def _pickled(what: Any) -> bytes:
    data: bytes = cloudpickle.dumps(what)  # type: ignore[no-untyped-call]  # PySpark's has no types
    return data


# The functions above, wherever one of them is pickled.
cloudpickle.register_pickle_by_value(  # type: ignore[no-untyped-call]  # PySpark's has no types
    sys.modules[__name__]
)
