"""
``python -m barnabas.server`` is the ``barnabas`` command.
"""

from barnabas.server.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
