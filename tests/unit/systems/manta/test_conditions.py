"""Conditions on an object: the service's own cases, the order of the four, what is missing, and how each may be written."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from bucketcatalog import InvalidOption
from bucketcatalog.systems.manta.conditions import Conditions
from bucketcatalog.systems.manta.errors import ObjectNotFound, PreconditionFailedError
from bucketcatalog.systems.manta.operations import Manta

from ....kit.manta.nodes import events
from ....kit.world import ID_1, ID_2, OWNER, World, obj

MODIFIED = datetime.datetime(2020, 10, 1, 10, 0, 0, 500_000, datetime.UTC)
FOUND = {"id": ID_1, "modified": MODIFIED}
LATER, EARLIER = MODIFIED + datetime.timedelta(days=1), datetime.datetime(2010, 1, 1, 10, tzinfo=datetime.UTC)
FAILING = {"if-match": ID_2, "if-unmodified-since": EARLIER, "if-none-match": ID_1, "if-modified-since": LATER}
ORDER = list(FAILING)


def check(**conditions: Any) -> None:
    """Check conditions of the object, named as arguments are."""
    Conditions.of({name.replace("_", "-"): value for name, value in conditions.items()}).check("a", FOUND)


def failure(**conditions: Any) -> str:
    with pytest.raises(PreconditionFailedError) as found:
        check(**conditions)
    assert found.value.name == "PreconditionFailedError"
    return found.value.message


class TestCasesOfTheService:
    def test_empty_headers_are_no_condition(self) -> None:
        assert not Conditions.of({}) and not Conditions.of(None)

    def test_undefined_headers_are_no_condition(self) -> None:
        assert not Conditions.of(dict.fromkeys(ORDER))

    def test_headers_that_do_not_apply_are_no_condition(self) -> None:
        assert not Conditions.of({"accept": ["test"], "x-if-match": ["test"], "Date": "yesterday"})

    def test_headers_of_several_kinds_are_conditions(self) -> None:
        headers = {"if-match": ["test"], "if-modified-since": "2020-10-01T10:00:00Z", "if-none-match": ["test"], "accept": "x"}
        found = Conditions.of(headers)
        assert found and found.if_match == ("test",) and found.if_none_match == ("test",)
        assert found.if_modified_since == 1_601_546_400_000_000 and found.if_unmodified_since is None

    def test_if_match_of_one_holds(self) -> None:
        check(if_match=[ID_1])

    def test_if_match_of_a_list_holds(self) -> None:
        check(if_match=["thing", ID_1])

    def test_if_match_of_a_list_with_any_holds(self) -> None:
        check(if_match=["test", "thing", "*"])

    def test_if_match_of_any_holds(self) -> None:
        check(if_match=["*"])

    def test_if_match_of_another_fails_and_names_both(self) -> None:
        assert f"if-match {ID_2}: its etag is {ID_1}" in failure(if_match=[ID_2])

    def test_if_none_match_of_another_holds(self) -> None:
        check(if_none_match=[ID_2])

    def test_if_none_match_of_a_list_fails_and_names_it(self) -> None:
        assert f"if-none-match test, thing, {ID_1}: its etag is" in failure(if_none_match=["test", "thing", ID_1])

    def test_if_none_match_of_a_list_with_any_fails(self) -> None:
        assert "if-none-match test, thing, *: its etag is" in failure(if_none_match=["test", "thing", "*"])

    def test_if_modified_since_an_earlier_time_holds(self) -> None:
        check(if_modified_since="2000-01-01T10:00:00Z")

    def test_if_modified_since_a_later_time_fails(self) -> None:
        message = failure(if_modified_since=LATER.isoformat())
        assert "if-modified-since 2020-10-02T10:00:00.500000Z: it was modified at 2020-10-01T10:00:00.500000Z" in message

    def test_if_unmodified_since_a_later_time_holds(self) -> None:
        check(if_unmodified_since=LATER.isoformat())

    def test_if_unmodified_since_an_earlier_time_fails(self) -> None:
        message = failure(if_unmodified_since="2010-01-01T10:00:00Z")
        assert "if-unmodified-since 2010-01-01T10:00:00.000000Z: it was modified at 2020-10-01T10:00:00.500000Z" in message


@pytest.mark.parametrize(("first", "second"), [(a, b) for n, a in enumerate(ORDER) for b in ORDER[n + 1 :]])
def test_of_two_that_fail_the_one_that_is_looked_at_first_is_the_answer(first: str, second: str) -> None:
    for order in ([first, second], [second, first]):
        with pytest.raises(PreconditionFailedError, match=f"does not meet {first} "):
            Conditions.of({name: FAILING[name] for name in order}).check("a", FOUND)


@pytest.mark.parametrize("last", ORDER)
def test_every_condition_counts_also_where_the_others_hold(last: str) -> None:
    holding = {"if-match": "*", "if-unmodified-since": LATER, "if-none-match": ID_2, "if-modified-since": EARLIER}
    Conditions.of(holding).check("a", FOUND)
    with pytest.raises(PreconditionFailedError, match=f"does not meet {last} "):
        Conditions.of(holding | {last: FAILING[last]}).check("a", FOUND)


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ({}, None),
        ({"if-match": "*"}, PreconditionFailedError),
        ({"if-match": ["x", "*"]}, PreconditionFailedError),
        ({"if-match": "*", "if-none-match": "*"}, PreconditionFailedError),
        ({"if-match": ID_1}, ObjectNotFound),
        ({"if-match": []}, ObjectNotFound),
        ({"if-none-match": "*"}, None),
        ({"if-none-match": [ID_1, "*"]}, None),
        ({"if-none-match": "*", "if-match": ID_1}, None),
        ({"if-none-match": "*", "if-modified-since": LATER}, None),
        ({"if-none-match": "*", "if-unmodified-since": EARLIER}, None),
        ({"if-none-match": ID_1}, ObjectNotFound),
        ({"if-none-match": []}, ObjectNotFound),
        ({"if-modified-since": EARLIER}, ObjectNotFound),
        ({"if-unmodified-since": LATER}, ObjectNotFound),
    ],
    ids=str,
)
def test_conditions_on_an_object_that_is_not_there(headers: Any, error: type[Exception] | None) -> None:
    conditions = Conditions.of(headers)
    if error is None:
        conditions.check("a", None)
    else:
        with pytest.raises(error, match=r"(T|t)here is no object"):
            conditions.check("a", None)


def test_an_empty_list_of_tags_matches_nothing() -> None:
    check(if_none_match=[])
    assert "its etag is" in failure(if_match=[])


@pytest.mark.parametrize(
    "text",
    [
        ID_1,
        f'"{ID_1}"',
        f'W/"{ID_1}"',
        f'"x", "{ID_1}"',
        f'W/"x",W/"{ID_1}"',
        f"x,{ID_1}",
        f' "{ID_1}" ',
        [f'"{ID_1}"'],
        ["x", f'W/"{ID_1}"'],
        (ID_1,),
        {ID_1},
        pytest.param(iter([ID_1]), id="iterator"),
        "*",
        "x, *",
        '"*"',
    ],
    ids=str,
)
def test_tags_match_however_http_writes_them(text: Any) -> None:
    given = list(text) if not isinstance(text, str) else text
    check(if_match=given)
    failure(if_none_match=given)


@pytest.mark.parametrize(
    "text", ["", ID_1[:-1], f"{ID_1}{ID_2}", f"*{ID_1}", f"{ID_1} {ID_2}", "**", "%", ID_1.replace("-", "_")]
)
def test_tags_match_as_a_whole(text: str) -> None:
    check(if_none_match=text)
    failure(if_match=text)


@pytest.mark.parametrize(
    "second",
    ["Thu, 01 Oct 2020 10:00:0{} GMT", "Thursday, 01-Oct-20 10:00:0{} GMT", "Thu Oct  1 10:00:0{} 2020"],
    ids=["as HTTP writes it", "as RFC 850 did", "as asctime does"],
)
def test_a_date_of_http_means_the_whole_second(second: str) -> None:
    check(if_unmodified_since=second.format(0))
    failure(if_modified_since=second.format(0))
    check(if_unmodified_since=second.format(1))
    failure(if_modified_since=second.format(1))


def test_a_date_of_http_before_the_second_lies_before_all_of_it() -> None:
    failure(if_unmodified_since="Thu, 01 Oct 2020 09:59:59 GMT")
    check(if_modified_since="Thu, 01 Oct 2020 09:59:59 GMT")


def test_a_date_of_http_in_another_zone_is_the_same_moment() -> None:
    check(if_unmodified_since="Thu, 01 Oct 2020 12:00:00 +0200")
    failure(if_unmodified_since="Thu, 01 Oct 2020 12:00:00 +0300")


@pytest.mark.parametrize(
    ("time", "is_modified_since"),
    [
        (MODIFIED, False),
        (MODIFIED - datetime.timedelta(microseconds=1), True),
        (MODIFIED.replace(microsecond=0), True),
        (MODIFIED.replace(tzinfo=None), False),
        (MODIFIED.astimezone(datetime.timezone(datetime.timedelta(hours=5))), False),
        ("2020-10-01T10:00:00.500000Z", False),
        ("2020-10-01T10:00:00.499999Z", True),
        ("2020-10-01T10:00:00Z", True),
        ("2020-10-01T10:00:01Z", False),
        ("2020-10-01T12:00:00.5+02:00", False),
        ("2020-10-01", True),
    ],
    ids=str,
)
def test_other_times_count_to_the_microsecond(time: Any, is_modified_since: bool) -> None:
    holds, fails = ("modified", "unmodified") if is_modified_since else ("unmodified", "modified")
    check(**{f"if_{holds}_since": time})
    failure(**{f"if_{fails}_since": time})


@pytest.mark.parametrize("name", ["if-match", "If-Match", "IF-MATCH", "if_match", "If_Match"])
def test_names_of_conditions_count_without_case(name: str) -> None:
    assert Conditions.of({name: "x"}) == Conditions(if_match=("x",))


@pytest.mark.parametrize("name", ["if-something", "if-matches", "if-not-match", "ifmatch", "if-modified", "if"])
def test_what_begins_like_a_condition_and_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidOption, match=f"'{name}' is no condition"):
        Conditions.of({name: "x"})


def test_a_header_for_ranges_says_nothing_of_the_object() -> None:
    assert not Conditions.of({"If-Range": ID_1, "Range": "bytes=0-1"})


@pytest.mark.parametrize("name", ["if-match", "if-none-match"])
@pytest.mark.parametrize("value", [7, 1.5, True, [7], ["x", None], b"x", [b"x"]], ids=str)
def test_what_is_no_tag_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=f"is no list of entity tags for '{name}'"):
        Conditions.of({name: value})


@pytest.mark.parametrize("name", ["if-modified-since", "if-unmodified-since"])
@pytest.mark.parametrize(
    "value",
    [
        "",
        "tomorrow",
        "Thu, 32 Oct 2020 10:00:00 GMT",
        "Thu, 01 Oct 2020",
        "2020-13-01",
        1_601_546_400,
        1.5,
        [LATER],
        LATER.date(),
    ],
    ids=str,
)
def test_what_is_no_time_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=f"is no time for '{name}'"):
        Conditions.of({name: value})


@pytest.mark.parametrize("operation", ["createobject", "getobject", "updateobject", "deleteobject"])
def test_each_operation_on_an_object_takes_conditions(world: World, node: Manta, operation: str) -> None:
    more: dict[str, Any] = {"createobject": {"id": ID_2}, "updateobject": {"content_type": "t", "headers": {}}}.get(operation, {})
    call = getattr(node, operation)
    with pytest.raises(ObjectNotFound):
        call(**obj("a", **more), conditions={"if-match": ID_1})
    with pytest.raises(PreconditionFailedError):
        call(**obj("a", **more), conditions={"if-match": "*"})
    with pytest.raises(InvalidOption):
        call(**obj("a", **more), conditions={"if-mismatch": "*"})
    assert events(world) == []

    created = node.createobject(**obj("a", id=ID_1))
    before = events(world)
    for conditions in ({"if-match": ID_2}, {"if-none-match": "*"}, {"if-modified-since": created["modified"]}):
        with pytest.raises(PreconditionFailedError):
            call(**obj("a", **more), conditions=conditions)
    assert events(world) == before
    call(**obj("a", **more), conditions={"if-match": ID_1, "if-unmodified-since": created["modified"]})


def test_a_condition_is_about_one_owners_object(node: Manta) -> None:
    node.createobject(**obj("a", id=ID_1) | {"owner": ID_2})
    with pytest.raises(ObjectNotFound):
        node.getobject(**obj("a"), conditions={"if-match": ID_1})
    assert node.getobject(**obj("a") | {"owner": ID_2}, conditions={"if-match": ID_1})["owner"] != OWNER


def test_a_time_may_count_from_now_and_then_does_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.datetime(2020, 10, 2, 10, tzinfo=datetime.UTC)
    monkeypatch.setattr("bucketcatalog.clock.now_us", lambda: int(now.timestamp()) * 1_000_000)
    since = Conditions.of({"if-modified-since": "2 days ago", "if-unmodified-since": "Today"})
    assert since.if_modified_since == int(now.timestamp() - 2 * 86_400) * 1_000_000
    assert since.if_unmodified_since == int(now.timestamp() - 10 * 3_600) * 1_000_000
    since.check("a", FOUND)
    assert failure(if_modified_since="now")
    with pytest.raises(InvalidOption, match="is no time for"):
        Conditions.of({"if-modified-since": "2 fortnights ago"})
