"""
What can be wrong with a value or its schema.
"""

from __future__ import annotations

from barnabas.pipeline.errors import PipelineError


class UnusableSchema(PipelineError, ValueError):
    """
    A schema cannot be used: it has no columns, or its values do not fit into those that are read.
    """


class MalformedValues(PipelineError, ValueError):
    """
    Some of the values are none of their schema. The sentence says why, without the place.
    """


class MalformedValue(PipelineError):
    """
    A query of ``mode=FAILFAST`` has met a value that cannot be decoded.
    """
