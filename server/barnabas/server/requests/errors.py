"""
What ends a connection instead of being answered.
"""

from __future__ import annotations


class CloseConnection(Exception):
    """
    The only answer to a request is to close its connection. The text is for the log.
    """
