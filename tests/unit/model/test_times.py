"""Times and ages as users type them: one parser for all forms, and no message that loses what makes an age too long."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog import InvalidOption, InvalidTime
from bucketcatalog.model.times import (
    FIRST_TIME,
    LAST_TIME,
    Moment,
    age_micros,
    kept_time,
    looks_like_time,
    parse_age,
    parse_time,
    refuse_reversed_times,
    settled_time,
    shown_age,
    shown_time,
    span_of,
)

from ...kit.world import DAY, HOUR, MINUTE, SECOND, START

TODAY = START // DAY * DAY
RELATIVE = {
    "now": START,
    "NOW": START,
    " today ": TODAY,
    "Yesterday": TODAY - DAY,
    "0s": START,
    "24h": START - DAY,
    "90m": START - 90 * MINUTE,
    "7d": START - 7 * DAY,
    "2w": START - 14 * DAY,
    "1h30m": START - 90 * MINUTE,
    "1h 30m": START - 90 * MINUTE,
    "1W2D3H4M5S": START - 9 * DAY - 3 * HOUR - 4 * MINUTE - 5 * SECOND,
    "2 days": START - 2 * DAY,
    "2 days 3 hours ago": START - 2 * DAY - 3 * HOUR,
    "2 days ago": START - 2 * DAY,
    "24h ago": START - DAY,
    "1 hour ago": START - HOUR,
    "3 WEEKS AGO": START - 21 * DAY,
    "1 sec": START - SECOND,
    "2 seconds": START - 2 * SECOND,
    "1 min ago": START - MINUTE,
    "5 minutes": START - 5 * MINUTE,
}
ABSOLUTE = {
    "2024-05-01": 1_714_521_600 * SECOND,
    "2024-05-01T12:00:00Z": 1_714_564_800 * SECOND,
    "2024-05-01 14:00:00+02:00": 1_714_564_800 * SECOND,
    "20240501T120000": 1_714_564_800 * SECOND,
    "2024-W18-3": 1_714_521_600 * SECOND,
    "@1714521600000000": 1_714_521_600 * SECOND,
    "@-5": -5,
}
NONE = [
    "",
    "@",
    "2024",
    "24",
    "-1h",
    "+1h",
    "1.5h",
    "h",
    "1 fortnight",
    "2 fortnights ago",
    "ago",
    "1h1h",
    "30m1h",
    "1h30",
    "1 y",
    "1mo",
    "24hs",
    "1 hour from now",
    "in 2 days",
    "2 days, 0:00:00",
    "tomorrow",
    "now ago",
    "1000000s",
    "9" * 5_000 + "d",
    "999999w 999999d",
    "\u0662\u0664h",
    "\uff12\uff14h",
    "@\u0661",
    "1\u017f",
    "1\u00a0h",
    "24h\n30m",
    "2024-13-01",
    "\ud800",
]


@pytest.mark.parametrize("text", RELATIVE)
def test_what_counts_from_now_is_so_long_ago(text: str) -> None:
    assert parse_time(text, START) == RELATIVE[text]
    assert looks_like_time(text)


@pytest.mark.parametrize("text", ABSOLUTE)
def test_what_names_a_time_is_that_whenever_it_is_read(text: str) -> None:
    assert parse_time(text, START) == parse_time(text, 0) == kept_time(text) == ABSOLUTE[text]
    assert looks_like_time(text) and settled_time(text) == text


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_time_is_refused_with_the_forms_that_there_are(text: str) -> None:
    with pytest.raises(InvalidTime, match=r"Use ISO 8601, .* such as 24h, '2 days ago', now, today or yesterday, or @ and"):
        parse_time(text, START)


@pytest.mark.parametrize("text", [*NONE, "now", "yesterday", "24h ago", "2024-05-01", "@5"])
def test_what_is_no_age_is_refused_with_the_forms_that_there_are(text: str) -> None:
    with pytest.raises(InvalidOption, match=r"is not an age\. Next: Write numbers and units, such as 90m, 24h, 1h30m, 7d, 4w or"):
        parse_age(text)


@pytest.mark.parametrize("text", [text for text in RELATIVE if text[:1].isdigit() and not text.lower().endswith("ago")])
def test_a_bare_age_is_one_as_well(text: str) -> None:
    assert parse_age(text) == age_micros(text) == START - RELATIVE[text]


def test_a_datetime_and_a_date_are_times_as_they_were() -> None:
    noon = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
    assert parse_time(noon) == parse_time(noon.replace(tzinfo=None)) == ABSOLUTE["2024-05-01T12:00:00Z"]
    assert parse_time(datetime.date(2024, 5, 1)) == ABSOLUTE["2024-05-01"]


@pytest.mark.parametrize("text", ["999999w ago", "999999d", "@" + "9" * 18, "@-" + "9" * 18, "0001-01-01T00:00:00+05:00"])
def test_what_lies_beyond_the_calendar_is_no_time(text: str) -> None:
    with pytest.raises(InvalidTime, match="lies outside of the years 1 to 9999"):
        parse_time(text, START)
    with pytest.raises(InvalidTime, match="lies outside of the years 1 to 9999"):
        parse_time("1w", FIRST_TIME)


def test_now_is_the_clocks_unless_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.clock.now_us", lambda: START)
    assert parse_time("now") == START and parse_time("now", 5) == 5


@pytest.mark.parametrize("text", RELATIVE)
def test_what_counts_from_now_is_settled_as_what_does_not(text: str) -> None:
    settled = settled_time(text, START)
    assert settled != text and settled_time(settled, 0) == settled
    assert parse_time(settled, 0) == RELATIVE[text]


@pytest.mark.parametrize("text", ["now", "24h", "yesterday", "2 days ago"])
def test_text_that_is_kept_does_not_count_from_now(text: str) -> None:
    with pytest.raises(InvalidTime, match="is not a time"):
        kept_time(text)


@pytest.mark.parametrize(
    "text",
    [
        "2024",
        "24",
        "20240501",
        "v1",
        "nowhere",
        "today-1",
        "24h@7",
        "2024-05@7",
        "2024-05@7:" + "0" * 32,
        ":",
        "h24",
        "7days-old",
    ],
)
def test_a_version_does_not_look_like_a_time(text: str) -> None:
    assert not looks_like_time(text)
    assert Moment.of(text) == Moment(version=text)


def test_a_moment_is_a_time_or_a_version() -> None:
    day = datetime.date(2024, 5, 1)
    assert Moment.of(None) == Moment() and not Moment().given and Moment().asked == {}
    assert Moment.of(20240501).asked == {"version": 20240501}
    assert Moment.of(day).asked == {"timestamp": day}
    assert Moment.of("24h", START).asked == {"timestamp": shown_time(START - DAY)}
    with pytest.raises(InvalidTime):
        Moment.of("2024-13-01")


def test_both_ends_of_a_span_count_from_one_now_and_may_not_be_reversed(monkeypatch: pytest.MonkeyPatch) -> None:
    ticking = iter(range(START, START + 100))
    monkeypatch.setattr("bucketcatalog.clock.now_us", lambda: next(ticking))
    start, end = span_of("1h", "now")
    assert end.timestamp == shown_time(START) and start.timestamp == shown_time(START - HOUR)
    refuse_reversed_times(start, end)
    refuse_reversed_times(*span_of("now", "now"))
    refuse_reversed_times(end, Moment())
    refuse_reversed_times(Moment(version="x"), start)
    with pytest.raises(InvalidOption, match="The start lies after the end"):
        refuse_reversed_times(end, start)


@pytest.mark.parametrize("text", ["0s", "1s", "60s", "119s", "366m", "21959s", "6h", "24h", "30d", "999999d"])
def test_a_whole_age_is_shown_as_it_is_typed(text: str) -> None:
    assert shown_age(parse_age(text)) == text


@given(st.integers(0, 999_999), st.sampled_from("smhdw"))
def test_whatever_whole_age_is_shown_can_be_typed(number: int, unit: str) -> None:
    age = parse_age(f"{number}{unit}")
    shown = shown_age(age)
    assert "." in shown or parse_age(shown) == age


@given(st.dictionaries(st.sampled_from("smhdw"), st.integers(0, 9_999), min_size=1), st.sampled_from(["", " "]))
def test_parts_of_an_age_add_up(parts: dict[str, int], between: str) -> None:
    told = [(number, unit) for unit in "wdhms" if (number := parts.get(unit)) is not None]
    text = between.join(f"{number}{unit}" for number, unit in told)
    assert parse_age(text) == sum(parse_age(f"{number}{unit}") for number, unit in told)


@given(st.integers(FIRST_TIME, LAST_TIME))
def test_whatever_time_is_shown_can_be_typed(time: int) -> None:
    assert parse_time(shown_time(time), 0) == time and looks_like_time(shown_time(time))


@given(st.text(max_size=12) | st.text("0123456789 smhdwago@-:TZ", max_size=12))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    try:
        time = parse_time(text, START)
    except InvalidTime:
        return
    assert FIRST_TIME <= time <= LAST_TIME and parse_time(settled_time(text, START)) == time


@pytest.mark.parametrize(
    ("typed", "text"), [("1m", "60s"), ("2m", "2m"), ("1h", "60m"), ("120m", "2h"), ("1d", "24h"), ("2w", "14d")]
)
def test_the_unit_is_the_largest_of_which_there_are_two(typed: str, text: str) -> None:
    assert shown_age(parse_age(typed)) == text


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (61_400_000, "61.4s"),
        (50_000, "0.1s"),
        (22_680_000_001, "6.3h"),
        (200_000_001, "3.3m"),
        (-1_500_000, "-1.5s"),
        (-1_000_000, "-1s"),
    ],
)
def test_what_is_not_whole_is_shown_to_a_tenth(age: int, text: str) -> None:
    assert shown_age(age) == text


def test_what_is_whole_in_more_digits_than_an_age_may_have_is_shown_to_a_tenth() -> None:
    assert shown_age(1_000_001 * 1_000_000) == "11.6d"


def test_a_timedelta_is_as_long_ago_as_the_text_of_it() -> None:
    for age, text in (
        (datetime.timedelta(hours=1), "1h"),
        (datetime.timedelta(days=2), "2 days ago"),
        (datetime.timedelta(), "now"),
    ):
        assert parse_time(age, START) == parse_time(text, START)
        assert Moment.of(age, START) == Moment.of(text, START)
    with pytest.raises(InvalidTime, match="outside of the years"):
        parse_time(datetime.timedelta.max, START)
