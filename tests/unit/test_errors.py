"""One tree of errors: each has a code of its own, survives pickling, and says what to do next."""

from __future__ import annotations

import pickle
import re

import pytest

from bucketcatalog import errors

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.BucketCatalogError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_errors_survive_pickling(kind: type[errors.BucketCatalogError]) -> None:
    error = kind("What is wrong.", next_step="What to do.")
    again = pickle.loads(pickle.dumps(error))

    assert (type(again), again.message, again.next_step) == (kind, "What is wrong.", "What to do.")
    assert str(again) == str(error) == f"[{kind.code}] What is wrong. Next: What to do."


def test_codes_are_distinct_and_stable() -> None:
    codes = [kind.code for kind in KINDS]

    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[A-Z_]+", code) for code in codes)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or "")) | {"BucketCatalogError"}

    assert drawn == {kind.__name__ for kind in KINDS}


def test_an_error_without_a_next_step_says_nothing_of_one() -> None:
    assert str(errors.StoreError("Down.")) == "[STORE] Down."


@pytest.mark.parametrize("kind", [k for k in KINDS if issubclass(k, errors.CorruptionError)], ids=lambda kind: kind.__name__)
def test_damage_without_a_next_step_of_its_own_leads_to_what_finds_and_mends_it(kind: type[errors.CorruptionError]) -> None:
    error = kind("Damaged.")

    assert error.next_step == kind.remedy
    assert "bucketcatalog verify" in error.next_step and "bucketcatalog repair" in error.next_step
    assert pickle.loads(pickle.dumps(error)).next_step == error.next_step
