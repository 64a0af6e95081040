"""
Options of quotas.
"""

from __future__ import annotations

from barnabas.storage.config.options import Int, Options, option, section


@section
class QuotaOptions(Options):
    """
    The time over which rates are taken.
    """

    quota_window_num: Int = option(
        11, "Over how many windows the rates of clients are taken.", at_least=1
    )
    quota_window_size_seconds: Int = option(1, "How long each of these is.", at_least=1)
    controller_quota_window_num: Int = option(
        11, "The same for partitions that are created and deleted.", at_least=1
    )
    controller_quota_window_size_seconds: Int = option(1, "How long each of these is.", at_least=1)
