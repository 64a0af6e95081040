"""
Lets the checkers watch the brokers of a process that a test starts: Python imports this module at
its start because ``tests/conftest.py`` puts its folder on ``PYTHONPATH``.
"""

import os
from importlib.util import module_from_spec, spec_from_file_location


def _install() -> None:
    if not os.environ.get("CHECKERS_OF_BARNABAS"):
        return
    checkers = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    # By its path: "tests" may be another package for this process, which is possibly no broker.
    spec = spec_from_file_location("_barnabas_checkers_hook", os.path.join(checkers, "hook.py"))
    assert spec is not None
    assert spec.loader is not None
    hook = module_from_spec(spec)
    spec.loader.exec_module(hook)
    hook.install(os.path.abspath(os.path.join(checkers, *[os.pardir] * 3)))


_install()
