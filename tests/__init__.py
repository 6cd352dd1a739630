"""Tests: a folder is a lane, but for the kit, which the lanes share."""

import pytest

pytest.register_assert_rewrite("tests.kit")
