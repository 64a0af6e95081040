"""
The assignors of consumer groups.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Final

from barnabas.coordination.groups.assignors import range_assignor, uniform_assignor
from barnabas.coordination.groups.modern.target import Assignor

ASSIGNORS: Final = {
    module.NAME: Assignor(module.NAME, module.assign)
    for module in (uniform_assignor, range_assignor)
}
"""
By name, in the order of Kafka's messages.
"""
