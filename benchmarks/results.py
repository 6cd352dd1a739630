"""What a benchmark found: measures with their goals, as a table for people and as JSON for programs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rich.table import Table

Comparison = Literal["ours / other", "other / ours", "ours"]


@dataclass(frozen=True)
class Sample:
    """Repeated measurements of one thing, in ``unit``."""

    values: tuple[float, ...]
    unit: str = "s"

    @classmethod
    def one(cls, value: float, unit: str) -> Sample:
        """Something that is counted, not timed, and the same each time."""
        return cls((value,), unit)

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.values)

    def scaled(self, factor: float, unit: str) -> Sample:
        """The sample in another unit."""
        return Sample(tuple(value * factor for value in self.values), unit)

    def document(self) -> dict[str, Any]:
        """The sample as JSON."""
        numbers = {"median": self.median, "min": min(self.values), "max": max(self.values)}
        return {**{name: _rounded(value) for name, value in numbers.items()}, "runs": len(self.values), "unit": self.unit}


@dataclass(frozen=True)
class Goal:
    """``ours`` or a ratio of medians is to be at most, or at least, ``limit``."""

    compares: Comparison
    at: Literal["at most", "at least"]
    limit: float

    def is_met(self, value: float) -> bool:
        """Whether the value reaches the goal."""
        return value <= self.limit if self.at == "at most" else value >= self.limit


@dataclass(frozen=True)
class Measure:
    """One line of the table. Without a goal it is there to explain another; ``other`` is what ours is compared with."""

    name: str
    ours: Sample
    other: Sample | None = None
    other_name: str = ""
    goal: Goal | None = None
    details: dict[str, Any] = field(default_factory=dict)
    compares: Comparison = "ours / other"

    @property
    def compared(self) -> float | None:
        """The number that the goal is about: a ratio of medians, or ours; None where there is nothing to compare with."""
        compares = self.goal.compares if self.goal else self.compares
        if compares == "ours":
            return self.ours.median
        if self.other is None or not self.other.median or not self.ours.median:
            return None
        return self.ours.median / self.other.median if compares == "ours / other" else self.other.median / self.ours.median

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without one."""
        return self.goal.is_met(self.compared) if self.goal is not None and self.compared is not None else None

    def document(self) -> dict[str, Any]:
        """The measure as JSON."""
        document: dict[str, Any] = {"measure": self.name, "ours": self.ours.document()}
        if self.other is not None:
            document["other"] = {"name": self.other_name, **self.other.document()}
        document["compares"] = self.goal.compares if self.goal else self.compares
        document["value"] = None if self.compared is None else _rounded(self.compared)
        document["goal"] = f"{self.goal.at} {self.goal.limit:g}" if self.goal else None
        document["met"] = self.met
        return document | ({"details": self.details} if self.details else {})


@dataclass(frozen=True)
class Group:
    """The measures that one module made, and the settings under which both sides ran."""

    measures: Sequence[Measure]
    settings: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """The group as JSON."""
        return {"settings": self.settings, "measures": [measure.document() for measure in self.measures]}


def table(documents: dict[str, dict[str, Any]]) -> Table:
    """The groups' documents as a table, a line a measure."""
    shown = Table(title="bucketcatalog against its peers", title_justify="left")
    shown.add_column("measure", overflow="fold")
    for heading in ("ours", "peer or reference", "ratio"):
        shown.add_column(heading, justify="right", overflow="fold")
    shown.add_column("goal", overflow="fold")
    shown.add_column("met?")
    for name, group in documents.items():
        shown.add_section()
        if "error" in group:
            shown.add_row(name, "", "", "", "", "[bold red]failed[/]")
        for measure in group.get("measures", []):
            shown.add_row(*line(measure), {True: "[green]yes[/]", False: "[bold red]no[/]", None: ""}[measure["met"]])
    return shown


def line(measure: dict[str, Any]) -> tuple[str, ...]:
    """A measure's document as it is shown: name, ours, the other, how they compare, goal."""
    other = measure.get("other")
    value = measure["value"]
    is_ratio = measure["compares"] != "ours"
    return (
        measure["measure"],
        _shown(measure["ours"]),
        f"{other['name']} {_shown(other)}" if other else "",
        f"{value:.3g} ({measure['compares']})" if is_ratio and value is not None else "",
        measure["goal"] or "",
    )


def _shown(sample: dict[str, Any]) -> str:
    value, unit = sample["median"], sample["unit"]
    if unit == "s":
        for factor, name in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
            if value * factor >= 1:
                return f"{value * factor:.3g} {name}"
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit in ("rows/s", "bytes") and value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
