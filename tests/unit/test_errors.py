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
    error.beside = ("what programs are told beside it",)  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(error))

    assert again.beside == error.beside  # type: ignore[attr-defined]
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


OF_FILES = {
    "w/d/transactions/7/u.txn": "catalog.repair(set_aside=['w/d/transactions/7/u.txn'], dry_run=False)",
    "maintainer-1/d/transactions/00000000000000000007/u.txn": "catalog.repair() what can be done",
    "w/d/transactions/00000000000000000007/u.ckpt": "catalog.repair(dry_run=False) goes on so",
    "w/d/segments/u.parquet": "who refers to it",
    "w/d/newest/99999999999999999999-u": "catalog.repair() what can be done",
}
"""What is said of files by their names."""


@pytest.mark.parametrize("kind", [k for k in KINDS if issubclass(k, errors.CorruptionError)], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("name", "step"), OF_FILES.items(), ids=lambda text: text.rpartition("/")[2])
@pytest.mark.parametrize("quote", ["", "'"], ids=["", "quoted"])
def test_damage_without_a_next_step_of_its_own_leads_to_what_fits_the_kind_of_file(
    kind: type[errors.CorruptionError], name: str, step: str, quote: str
) -> None:
    error = kind(f"{quote}{name}{quote} is damaged.")

    assert step in error.next_step and error.next_step.startswith("Restore the file from a copy of the store")
    assert ("set_aside=" in error.next_step) == errors.can_be_set_aside(name) == name.startswith("w/d/") & name.endswith(".txn")
    assert pickle.loads(pickle.dumps(error)).next_step == error.next_step
    assert kind("Damaged.", next_step="").next_step == ""


@pytest.mark.parametrize("word", ["The", "Anything.txn", "lab.ckpt", "/.parquet", "'x.txn'", "a/b/c.txn", "w/d/data/u.parquet"])
def test_a_word_that_is_no_name_of_a_catalogs_file_is_not_taken_for_one(word: str) -> None:
    error = errors.CorruptionError(f"{word} definition of table 'lab.r' cannot be used.")

    assert "set_aside=" not in error.next_step and "the file" not in error.next_step
    assert "catalog.verify() says which file is damaged" in error.next_step
