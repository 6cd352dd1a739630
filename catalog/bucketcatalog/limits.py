"""Every time that the protocol counts on, and which has to be longer than which; and how large what is read may be.

Times are microseconds, but where a name says otherwise.

Nobody asks anybody here: that a file may go, or data, is known by time alone. So the safety of every deletion rests on the inequalities at
the end of this page, each with its reason; the tests check them, and that each would notice. Whoever uses a time says ``limits.NAME``.
Source: docs/spec, the pages on writing, checkpoints, pruning and collection.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import InvalidOption

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

MAX_COMMIT_DELAY = 5 * MINUTE
"""How long a commit is tried: after that nothing of it can arrive any more."""
MAX_CLOCK_SKEW = MINUTE
"""How far a writer's clock may be from the store's; a commit further off is refused."""
LATENESS_BOUND = MAX_COMMIT_DELAY + MAX_CLOCK_SKEW
"""How long after its commit time a transaction can still arrive, by the store's clock."""
MAX_LATENESS_BOUND = 24 * HOUR
"""The longest that any transaction may claim of that, whoever wrote it: deletion waits for as long, and may not wait for ever."""
LOOK_WITHIN = 30 * SECOND
"""How old a writer's last look at its own timeline may be when it commits: so long a second process with its id can go unnoticed."""
SEALED_AFTER = LOOK_WITHIN + 2 * LATENESS_BOUND
"""How long after it could first be seen that a writer is retired nothing of it can arrive any more: a commit that had looked before may be
tried for as long as commits may, and its put again."""
LEARNT_TIME_LASTS = 30 * SECOND
"""How long a store's time is gone by that an answer of it has told; a commit compares the machine's clock with it."""
MAX_SNAPSHOT_AGE = 6 * HOUR
"""How long what a process has read may be used: by readers, and by writers for what they commit."""
PUBLISH_WITHIN = 6 * HOUR
"""How long a checkpoint may take, from its look to its publication: until it is published it is a reader of the segments it refers to."""

PRUNE_GRACE = 24 * HOUR
"""How long after a horizon was published the files behind it are left, by default."""
SAFE_PRUNE_GRACE = MAX_SNAPSHOT_AGE + LATENESS_BOUND
"""The shortest such time that need not be forced: what is published is seen by then, and who had looked before is done."""
LEFT_BEHIND = max(PUBLISH_WITHIN, SAFE_PRUNE_GRACE)
"""The age from which nobody who has put a segment can still come to refer to it."""
MARKER_DELAY = 7 * 24 * HOUR
"""The age from which no marker of a checkpoint can still arrive."""

COLLECTION_GRACE = 24 * HOUR
"""How long tombstones, and data that nothing names, are left alone by default (RFD 149's)."""
SAFE_COLLECTION_GRACE = MAX_SNAPSHOT_AGE
"""The shortest such time that need not be forced."""
BOUNDARY_WAIT = LATENESS_BOUND + MAX_SNAPSHOT_AGE
"""How long after a data boundary was published data may be deleted by it: it is seen by then, and who had not seen it has landed."""

PLAIN_PIN_AGE, PLAIN_PINS = 7 * 24 * HOUR, 16
"""How long after its commit a tag of who is no maintainer holds what it names, by default, and how many of a writer's do at once. The
same of a pin, after it was last given."""
PLAIN_PIN_NAMES = 64
"""Of how many pins of such a writer anything counts, dropped ones among them: a checkpoint has the entries of all."""
PIN_RENEWAL = 6 * HOUR
"""How old a pin is, at least, when it is given again to a cut without other events: before that nothing is committed for it."""

UNFINISHED_PUT_AGE = HOUR
"""The age from which no put of a writer is under way; large files take longer than a commit."""
PATIENCE_SECONDS = 60.0
"""Seconds for which a put or a delete beside a commit is tried again."""


INDEX_BYTES, FOOTER_BYTES = 16 << 20, 32 << 20
"""Of a segment: what is larger is not parsed, for in memory it is up to forty times as large."""
LOG_FILE_BYTES = 16 << 20
"""The same of a transaction, and of a checkpoint, which grow by what they refer to and not by rows."""
SEGMENT_BYTES, FILTER_BYTES = 1 << 30, 128 << 20
"""Of a segment, and of its filters."""
REVISIONS = COUNTS = 10**15
"""Revisions lie below: who commits a thousand times a second needs 30,000 years for so many, and the names of files have room for more. No
count of rows or transactions is larger either."""
ACTIONS = 64
"""How many events a transaction carries one by one."""
PARENTS = HEADS = 65_536
"""How many parents a transaction has at most, and how many heads of one timeline a cut."""
FOLLOWED = 64
"""How many ends of a timeline what stands in for an unreadable file follows: thousands behind thousands of ends would name millions."""
DEFINITIONS, DEFINITION_BYTES = 4_096, 4 << 20
"""How many definitions of tables a transaction or segment has at most, and their bytes together."""
PLAIN_DEFINITIONS = 1_024
"""How many definitions of one plain writer count, in all its transactions, of ``DEFINITION_BYTES`` together: a checkpoint has them all."""
CHECKPOINT_DEFINITIONS, CHECKPOINT_DEFINITION_BYTES = 16_384, 12 << 20
"""How many a checkpoint has at most, and their bytes together: far more than one writer can have."""
TABLE_SYMBOLS = 65_536
"""How many names the enumerations of a table have at most, those of each of its columns counted."""
BLOCK_ROWS = 65_536
"""How many rows a block of a message has at most, and all blocks of a transaction together."""
CHECKPOINT_ROWS = 262_144
"""How many rows all blocks of a checkpoint have at most, those that lie in itself."""
RUN_ROWS, RUN_LEVELS = 1 << 31, 256
"""How many rows a run has at most, and on which level it lies below."""
ROW_GROUPS = COLUMNS = 16_384
"""How many row groups a segment has at most, and how many columns, groups of columns included."""
TABLE_COLUMNS = 16_000
"""The same of a table: those that the engine adds are left for it."""
LEVELS = 64
"""How deep a column of a table may be, a message and a list being a level each, and a map two: Arrow's streams have no more."""
CHUNKS = 65_536
"""How many column chunks all row groups of a segment have at most."""
GROUP_ROWS, GROUP_BYTES = 131_072, 256 << 20
"""How many rows a row group has at most, and to how many bytes what is read of it comes at most, decompressed and expanded."""
WRITTEN_BYTES = GROUP_BYTES // 2
"""To how many bytes what is written of a row group, and so a row that a merge makes, comes at most, as a writer counts them."""
ROW_BYTES = 63 << 20
"""The same of a row that is given. A merge makes one of two at most, an update and the fixed columns of a PUT, and fills in times."""
ACTION_BYTES, ACTION_VALUES = ROW_BYTES // 13, ROW_BYTES // 49
"""Of a row that a transaction carries by itself: of more bytes, or more values in a list or map, it would come to more."""
STATISTICS_BYTES = 1_024
"""The longest texts and bytes that an index has as bounds."""


@dataclass(frozen=True, slots=True)
class Limits:
    """A writer's promises: how long a commit may take to reach the store, and how wrong its clock may be."""

    commit_delay: int = MAX_COMMIT_DELAY
    clock_skew: int = MAX_CLOCK_SKEW

    def __post_init__(self) -> None:
        """``InvalidOption`` where a limit is wider than what readers and other writers count on."""
        if not (0 <= self.commit_delay <= MAX_COMMIT_DELAY and 0 <= self.clock_skew <= MAX_CLOCK_SKEW):
            raise InvalidOption(
                f"A writer cannot have the limits {self.commit_delay / SECOND:g} s and {self.clock_skew / SECOND:g} s.",
                next_step=f"Allow at most {MAX_COMMIT_DELAY / SECOND:g} s of delay and {MAX_CLOCK_SKEW / SECOND:g} s of skew.",
            )

    @property
    def lateness_bound(self) -> int:
        """After its commit time by when a transaction is in the store, or never will be."""
        return self.commit_delay + self.clock_skew

    @property
    def usable_for(self) -> int:
        """How old, at its commit time, what a transaction rests on may be: it has landed before that is older than anything may be used."""
        return MAX_SNAPSHOT_AGE - self.lateness_bound


DEFAULT_LIMITS = Limits()


def a_transaction_arrives_within_the_bound() -> bool:
    """Readers count on one bound for every writer whose own is not known: no writer may promise less than it keeps."""
    return LATENESS_BOUND >= MAX_COMMIT_DELAY + MAX_CLOCK_SKEW and DEFAULT_LIMITS.lateness_bound <= LATENESS_BOUND


def nobody_who_keeps_to_limits_claims_too_much() -> bool:
    """What a writer may promise is what readers take."""
    return LATENESS_BOUND <= MAX_LATENESS_BOUND


def what_was_looked_up_can_be_committed() -> bool:
    """A commit has to land before what it has looked up is too old: else no transaction that looks anything up could ever commit."""
    return MAX_SNAPSHOT_AGE > LATENESS_BOUND


def a_checkpoint_is_a_reader_until_it_is_published() -> bool:
    """The segments that it refers to again belong to others, who may let them go once readers are done."""
    return PUBLISH_WITHIN <= MAX_SNAPSHOT_AGE


def files_outlive_their_readers() -> bool:
    """Who looked just before a horizon could be seen has read, merged or committed by the time that anything behind it goes."""
    return max(MAX_SNAPSHOT_AGE, PUBLISH_WITHIN) + LATENESS_BOUND <= SAFE_PRUNE_GRACE and PRUNE_GRACE >= SAFE_PRUNE_GRACE


def segments_outlive_who_may_refer_to_them() -> bool:
    """A segment is put before what refers to it: by then that is published, or never will be."""
    return max(PUBLISH_WITHIN, MAX_SNAPSHOT_AGE, LATENESS_BOUND) <= LEFT_BEHIND and LEFT_BEHIND >= SAFE_PRUNE_GRACE


def markers_outlive_who_puts_them() -> bool:
    """A marker that arrives after its checkpoint was taken for unmarked would lead to what has gone."""
    return MARKER_DELAY > PATIENCE_SECONDS * SECOND and MARKER_DELAY >= LEFT_BEHIND


def data_outlives_who_may_name_it() -> bool:
    """Who has not seen a boundary may name data that it lets go: it has landed when the wait is over, and is seen by who deletes."""
    return BOUNDARY_WAIT >= LATENESS_BOUND + MAX_SNAPSHOT_AGE


def parts_outlive_who_may_name_them() -> bool:
    """What is written for a transaction is data that nothing names until that lands, and may go as such as soon as anything may."""
    return DEFAULT_LIMITS.usable_for + LATENESS_BOUND <= SAFE_COLLECTION_GRACE


def tombstones_outlive_their_readers() -> bool:
    """Readers of an older cut may still ask for the data of what has ended since."""
    return SAFE_COLLECTION_GRACE >= MAX_SNAPSHOT_AGE and COLLECTION_GRACE >= SAFE_COLLECTION_GRACE


def a_pin_is_renewed_in_time() -> bool:
    """Whoever has only just not renewed a pin can be away for a day, or commit late, before the pin holds nothing any more."""
    return PIN_RENEWAL + 24 * HOUR + LATENESS_BOUND <= PLAIN_PIN_AGE


def no_put_under_way_is_thrown_away() -> bool:
    """A commit is given up long before its put is taken for one that nobody will finish."""
    return UNFINISHED_PUT_AGE > MAX_COMMIT_DELAY + PATIENCE_SECONDS * SECOND


def a_second_process_is_noticed_in_time() -> bool:
    """A writer looks for strays on its timeline more often than a commit may take, and than clocks may differ."""
    return min(MAX_CLOCK_SKEW, MAX_COMMIT_DELAY) >= LOOK_WITHIN


def nothing_arrives_behind_a_seal() -> bool:
    """Who has looked just before it was retired commits at once, or prepares the commit and puts it for as long as either may take."""
    return SEALED_AFTER >= LOOK_WITHIN + MAX_COMMIT_DELAY + LATENESS_BOUND


def a_wrong_clock_is_noticed_in_time() -> bool:
    """The store's time is learnt again before a clock that was right, or a commit, can have gone as far wrong, or on, as either may."""
    return min(MAX_CLOCK_SKEW, MAX_COMMIT_DELAY) >= LEARNT_TIME_LASTS


INEQUALITIES = (
    a_transaction_arrives_within_the_bound,
    nobody_who_keeps_to_limits_claims_too_much,
    what_was_looked_up_can_be_committed,
    a_checkpoint_is_a_reader_until_it_is_published,
    files_outlive_their_readers,
    segments_outlive_who_may_refer_to_them,
    markers_outlive_who_puts_them,
    data_outlives_who_may_name_it,
    parts_outlive_who_may_name_them,
    tombstones_outlive_their_readers,
    a_pin_is_renewed_in_time,
    no_put_under_way_is_thrown_away,
    a_second_process_is_noticed_in_time,
    nothing_arrives_behind_a_seal,
    a_wrong_clock_is_noticed_in_time,
)
"""What must be true of the times above."""
