"""
Faults of a broker, one for each rule at least.

A fault replaces text of the product. If the text is not there any more, the module has changed:
find the place where the behaviour is now.
"""

from __future__ import annotations

from typing import Final

from tests.mutations.overlay import Change


class BrokerFault:
    """
    Attributes:
        rules: those that the fault breaks.
        seeds: of histories in which it does.
        is_certain: whether each run of these histories breaks the rules. Others depend on the time
            that clients take.
    """

    def __init__(
        self,
        name: str,
        rules: set[str],
        seeds: tuple[int, ...],
        *changes: Change,
        is_certain: bool = True,
    ) -> None:
        self.name = name
        self.is_certain = is_certain
        self.rules = rules
        self.seeds = seeds
        self.changes = changes


_LOG: Final = "storage/barnabas/storage/log/"
_PRODUCERS: Final = "storage/barnabas/storage/producers/"
_SERVER: Final = "server/barnabas/server/"
_COORDINATION: Final = "coordination/barnabas/coordination/"
_REBUILD: Final = _LOG + "batch_rebuild.py"
_ENDING: Final = _COORDINATION + "transactions/ending.py"
_RECONCILIATION: Final = _COORDINATION + "groups/consumer/reconciliation.py"

FAULTS: Final = (
    BrokerFault(
        "DeleteRecords deletes one record more",
        {"only_deletions_move_the_log_start"},
        (6,),
        Change(
            _LOG + "log.py",
            "offset, LogStartOffsetIncrementReason.CLIENT_RECORD_DELETION",
            "offset + 1, LogStartOffsetIncrementReason.CLIENT_RECORD_DELETION",
        ),
    ),
    BrokerFault(
        "DeleteRecords deletes one record less",
        {"deleted_records_stay_deleted"},
        (6,),
        Change(
            _LOG + "log.py",
            "offset, LogStartOffsetIncrementReason.CLIENT_RECORD_DELETION",
            "offset - 1, LogStartOffsetIncrementReason.CLIENT_RECORD_DELETION",
        ),
    ),
    BrokerFault(
        "a batch that was sent again is appended again",
        {"records_are_not_duplicated"},
        (9,),
        Change(_LOG + "append.py", "if analysis.maybe_duplicate is not None:", "if False:"),
        is_certain=False,
    ),
    BrokerFault(
        "some batches are refused after they were written",
        {"records_were_sent"},
        (0, 1),
        Change(
            _LOG + "append.py",
            "            self._watermarks.follow_log_end_offset()\n",
            "            self._watermarks.follow_log_end_offset()\n"
            "            if origin is AppendOrigin.CLIENT and info.last_offset % 5 == 4:\n"
            "                raise InvalidRecord\n",
        ),
    ),
    BrokerFault(
        "some batches are refused, and gaps in sequence numbers are allowed",
        {"records_keep_the_order_of_their_producer"},
        (3, 2),
        Change(
            _LOG + "append.py",
            "        info = LogAppendInfo(self._watermarks.log_start_offset)\n",
            "        info = LogAppendInfo(self._watermarks.log_start_offset)\n"
            "        if origin is AppendOrigin.CLIENT and self._clock.now_ms() % 4 == 0:\n"
            "            raise NotLeaderOrFollower\n",
        ),
        Change(
            _LOG + "append.py",
            "import InvalidRecord,",
            "import InvalidRecord, NotLeaderOrFollower,",
        ),
        Change(_PRODUCERS + "append.py", "if first_seq != last_seq + 1 and", "if False and"),
        is_certain=False,
    ),
    BrokerFault(
        "responses name the offset after the first record",
        {"offsets_identify_records"},
        (0, 1),
        Change(
            _SERVER + "produce/responses.py",
            "AppendedResponse(index, info.first_offset,",
            "AppendedResponse(index, info.first_offset + 1,",
        ),
    ),
    BrokerFault(
        "the recovery drops the last batch",
        {"acknowledged_records_are_kept", "what_was_read_stays"},
        (1, 2),
        Change(
            "storage/barnabas/storage/recovery/segment_recovery.py",
            "            for batch in segment.log.batches():\n",
            '            is_ours = "/a-" in str(segment.log.path)\n'
            "            for batch in [*segment.log.batches()][: -1 if is_ours else None]:\n",
        ),
    ),
    BrokerFault(
        "the last stable offset is the high watermark",
        {"committed_readers_see_no_open_transaction"},
        (0,),
        Change(
            _LOG + "watermarks.py",
            "if first is None or first.message_offset >=",
            "if True or first.message_offset >=",
        ),
    ),
    BrokerFault(
        "an abort commits the offsets of the group",
        {"outputs_match_inputs"},
        (0, 2),
        Change(
            _COORDINATION + "groups/offsets/offsets.py",
            "            if committed:\n",
            "            if True:\n",
        ),
    ),
    BrokerFault(
        "accepted records become available",
        {"finished_records_are_not_delivered_again"},
        (11, 10),
        Change(
            _COORDINATION + "share/record_state.py",
            "AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED",
            "AcknowledgeType.ACCEPT: RecordState.AVAILABLE",
        ),
    ),
    BrokerFault(
        "small fetches begin one offset later",
        {"polls_skip_nothing"},
        (0,),
        Change(
            _LOG + "reads.py",
            "    end_offset = end.message_offset\n",
            "    end_offset = end.message_offset\n    start_offset += max_length <= 200\n",
        ),
    ),
    BrokerFault(
        "a fetch does not find the last record",
        {"acknowledged_records_can_be_read_at_once"},
        (10, 12),
        Change(
            _LOG + "reads.py",
            "if start_offset == bound.message_offset:",
            "if start_offset >= bound.message_offset - 1:",
        ),
        is_certain=False,
    ),
    BrokerFault(
        "fetches answer the remainder of the high watermark",
        {"watermarks_move_forward"},
        (0,),
        Change(
            _SERVER + "fetch/reader.py",
            "        high_watermark=watermarks.high_watermark,",
            "        high_watermark=watermarks.high_watermark % 3,",
        ),
        is_certain=False,
    ),
    BrokerFault(
        "an abort writes commit markers",
        {"markers_end_transactions", "transactions_are_atomic"},
        (0, 1),
        Change(
            _PRODUCERS + "append.py",
            "is_aborted = marker.control_type is ControlRecordType.ABORT",
            "is_aborted = marker.control_type is not ControlRecordType.ABORT",
        ),
    ),
    BrokerFault(
        "OffsetFetch answers the next offset",
        {"groups_skip_nothing", "commits_are_kept"},
        (2,),
        Change(
            _COORDINATION + "groups/offsets/fetching.py",
            "committed_offset=offset.offset,",
            "committed_offset=offset.offset + 1,",
        ),
    ),
    BrokerFault(
        "generations are not compared",
        {"old_members_cannot_commit"},
        (31,),
        Change(
            _COORDINATION + "groups/classic/group.py",
            "        if generation_id != self.generation_id:\n            raise IllegalGeneration",
            "",
        ),
        is_certain=False,
    ),
    BrokerFault(
        "a loaded group begins with generation 0",
        {"epochs_of_groups_rise"},
        (10,),
        Change(
            _COORDINATION + "groups/persistence.py",
            "generation_id=value.generation,",
            "generation_id=0,",
        ),
        is_certain=False,
    ),
    BrokerFault(
        "locks of share groups end early",
        {"records_have_one_holder"},
        (10, 11, 20, 24, 38),
        Change(_SERVER + "share/fetching.py", "settings.record_lock_duration_ms,", "0,"),
    ),
    BrokerFault(
        "share groups begin with the second record",
        {"share_groups_deliver_everything"},
        (4, 9),
        Change(
            _SERVER + "share/offset_reset.py",
            "return log.log_start_offset",
            "return log.log_start_offset + 1",
        ),
    ),
    BrokerFault(
        "members keep what others are given",
        {"assignments_are_disjoint"},
        (1, 2),
        Change(
            _RECONCILIATION,
            "        if stays := {",
            "        target |= current.keys()\n        if stays := {",
        ),
        Change(
            _RECONCILIATION,
            "[p for p in missing if p in own or not goal.is_taken(topic_id, p)]",
            "missing",
        ),
    ),
    BrokerFault(
        "old epochs may end transactions",
        {"fenced_producers_are_refused"},
        (8, 9),
        Change(
            _ENDING,
            "    if current.producer_epoch != producer.producer_epoch:\n",
            "    if False:\n",
        ),
        Change(_ENDING, "if not _has_epoch(current, producer, is_repeated):", "if False:"),
    ),
    BrokerFault(
        "topics are not deleted",
        {"deleted_topics_lose_their_records"},
        (15, 17),
        Change(
            _SERVER + "topics/topics.py",
            "return await self._controller.change(partial(self._delete, topic_ids, charge))",
            "return {}",
        ),
    ),
    BrokerFault(
        "the compression of a topic leaves out the last record",
        {"batches_are_whole"},
        (118, 120),
        Change(
            _REBUILD,
            "    if payload is None:\n",
            "    payload = None\n    if payload is None:\n",
        ),
        Change(
            _REBUILD,
            "encode_records(chain([first], records), 0,",
            "encode_records([first, *records][:-1] or [first], 0,",
        ),
        Change(
            _REBUILD,
            "        batch.record_count,\n",
            "        max(1, batch.record_count - 1),\n",
        ),
    ),
    BrokerFault(
        "batches begin with the offset before",
        {"positions_move_forward"},
        (1, 2),
        Change(
            _LOG + "validator.py",
            "last_offset - batch.last_offset_delta, leader_epoch)",
            "last_offset - batch.last_offset_delta\n"
            "            - (batch.producer_id >= 0 and info.first_offset > 1), leader_epoch)",
        ),
    ),
    BrokerFault(
        "committed readers do not get the last record",
        {"records_without_transaction_are_committed"},
        (0, 1),
        Change(
            _LOG + "watermarks.py",
            "first.message_offset >= high_watermark.message_offset:\n"
            "            return high_watermark\n",
            "first.message_offset >= high_watermark.message_offset:\n"
            "            if high_watermark.message_offset < 2:\n"
            "                return high_watermark\n"
            "            with self._lock:\n"
            "                offset = high_watermark.message_offset - 1\n"
            "                return self._place(offset, nowait=nowait)\n",
        ),
    ),
)
