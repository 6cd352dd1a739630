"""Ages read as users type them: no message loses what makes one of them too long."""

from __future__ import annotations

import pytest

from bucketcatalog.model.times import parse_age, shown_age


@pytest.mark.parametrize("text", ["0s", "1s", "60s", "119s", "366m", "21959s", "6h", "24h", "30d", "999999d"])
def test_a_whole_age_is_shown_as_it_is_typed(text: str) -> None:
    assert shown_age(parse_age(text)) == text


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
