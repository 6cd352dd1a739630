"""What is committed to a catalog: by its writers, and what a maintainer says in it of tables, tags and pins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .. import clock
from ..limits import DEFAULT_LIMITS, Limits
from ..log.versions import Version
from ..model.names import names_given, new_pin_name, new_tag_name, pin_name, tag_name, writer_id
from ..model.public import public
from ..model.times import Age, Time
from .opened import DEFAULT_DATABASE, Opened

if TYPE_CHECKING:
    from ..write.commit import Committed
    from ..write.declaring import CreatedTable
    from ..write.pins import Pin
    from ..write.tags import Tag
    from ..write.writer import Writer


@public("create_table", "declare", "drop_tag", "pin", "register", "tag", "unpin", "writer")
class Writing(Opened):
    """What whoever writes asks of a catalog."""

    def register(self, tables: ModuleType | Iterable[Any] | Any) -> list[str]:
        """Make the tables of a compiled ``.proto`` (a module, a message class, or several) known to this catalog's writers.

        Returns their names. ``IncompatibleTable`` where a message is no table or contradicts one of the same name.
        """
        return self.registry.register(tables)

    def declare(self, tables: Iterable[str], *, database: str = DEFAULT_DATABASE, writer: str | None = None) -> Committed | None:
        """Say in a database what tables are that were made known to this catalog, in one commit: every reader knows them from then on.

        None, and no commit, where the database has them so. It is committed by a maintainer, by default this machine's, whose word counts
        above others'; see ``Writer.declare`` for what another ``writer`` can say.
        """
        names = names_given(tables, "tables", "tables=['jobs.runs']")
        with self._maintainer(self.database(database), writer) as held:
            return held.declare(names)

    def create_table(
        self,
        name: str,
        schema: Any,
        *,
        key: Iterable[str],
        id: str | None = None,
        keep_tombstones: bool | None = None,
        tombstone_retention: Age | None = None,
        minimum: Mapping[str, int | None] | None = None,
        maximum: Mapping[str, int | None] | None = None,
        allowed: Mapping[str, Iterable[str | int] | None] | None = None,
        parent: tuple[str, str] | None = None,
        parent_must_exist: bool | None = None,
        rename: Mapping[str, str] | None = None,
        remove: Iterable[str] = (),
        database: str = DEFAULT_DATABASE,
        writer: str | None = None,
    ) -> CreatedTable:
        """Make a table of an Arrow schema, or of that of Arrow data or a frame, known to this catalog and declare it in a database.

        Called again it changes the table to the schema: what is new is added, what is left out has to be named in ``remove``, and
        ``rename`` maps old names to new ones. What is None stays as it is; tombstones are kept by default. Returns the table's ``.proto``.
        Rows with values below a column's ``minimum``, above its ``maximum`` or not ``allowed`` are refused; a limit that is None is none.
        ``parent`` is a table and the column that has the id of a row of it, which ``parent_must_exist`` when rows that name it are put.
        Nothing is committed where the table is so already; it is by a maintainer, by default this machine's, and of a ``writer`` that is
        none new columns alone count, unless it has made the table.

        ``IncompatibleTable`` for a type that no column has, and for what the table cannot become; ``InvalidName`` for what it, or a column,
        cannot be called.
        """
        from ..write.declaring import create_table, wanted_table

        wanted = wanted_table(
            name,
            schema,
            key=key,
            id=id,
            keep_tombstones=keep_tombstones,
            tombstone_retention=tombstone_retention,
            minimum=minimum,
            maximum=maximum,
            allowed=allowed,
            parent=parent,
            parent_must_exist=parent_must_exist,
            rename=rename,
            remove=remove,
        )
        self.registry.refuse_owned(name)
        opened = self.database(database)
        with self._maintainer(opened, writer) as held:
            table, created = create_table(opened, held, wanted)
        self.registry.know(table)
        return created

    def writer(
        self,
        writer: str,
        *,
        database: str = DEFAULT_DATABASE,
        clock: Callable[[], int] = clock.now_us,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Writer:
        """Open a writer id in a database for commits. One process at a time may hold it.

        ``clock`` gives the time in microseconds. ``ForeignBranch`` where the id's timeline is forked beyond one stray transaction.
        """
        from ..write.writer import Writer

        return Writer(self.database(database), writer_id(writer), clock, limits, takes=self.registry.writes)

    def tag(
        self,
        name: str,
        *,
        database: str | None = None,
        timestamp: Time | None = None,
        version: Version | None = None,
        writer: str | None = None,
        replace: bool = False,
    ) -> Tag:
        """Give a name to the cut of now, of a time, or of a version: wherever a version is taken, the name can be given from then on.

        It is committed by a maintainer, by default this machine's; see ``Writer.tag``.
        """
        new_tag_name(name)
        with self._maintainer(self._existing(database), writer) as held:
            return held.tag(name, timestamp=timestamp, version=version, replace=replace)

    def drop_tag(self, name: str, *, database: str | None = None, writer: str | None = None) -> Tag:
        """Take a name back from its cut; see ``Writer.drop_tag``."""
        tag_name(name)
        with self._maintainer(self._existing(database), writer) as held:
            return held.drop_tag(name)

    def pin(
        self,
        name: str,
        *,
        database: str | None = None,
        timestamp: Time | None = None,
        version: Version | None = None,
        writer: str | None = None,
    ) -> Pin:
        """Keep what is committed after the cut of now, of a time, or of a version from being pruned.

        It is committed by a maintainer, by default this machine's, and holds until it is dropped; who follows changes gives a pin of its
        own writer instead, which ends by itself. See ``Writer.pin``.
        """
        new_pin_name(name)
        with self._maintainer(self._existing(database), writer) as held:
            return held.pin(name, timestamp=timestamp, version=version)

    def unpin(self, name: str, *, database: str | None = None, writer: str | None = None) -> Pin:
        """Drop a pin of a maintainer, by default this machine's; see ``Writer.unpin``."""
        pin_name(name)
        with self._maintainer(self._existing(database), writer) as held:
            return held.unpin(name)
