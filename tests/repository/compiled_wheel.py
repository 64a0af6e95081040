"""
Checks an installed wheel: it is compiled, and a record passes through it.

    python tests/repository/compiled_wheel.py

cibuildwheel runs this with the Python that it has built a wheel for.
"""

from __future__ import annotations

import sys

from barnabas.protocol.records import record


def main() -> None:
    """
    Fail unless the installed package works as built.
    """
    if str(record.__file__).endswith(".py"):
        raise SystemExit(f"{record.__file__} is not compiled")
    if sys.platform != "win32":  # A broker needs fcntl.
        from barnabas.testing import Broker  # noqa: PLC0415  # not on Windows

        with Broker() as broker:
            orders = broker.topic("orders").create()
            orders.append(["first"])
            values = [each.value for each in orders.records()]
        if values != [b"first"]:
            raise SystemExit(f"the topic has {values}")
    print(f"{record.__file__} works")


if __name__ == "__main__":
    main()
