"""Where the demo's time went."""

from __future__ import annotations

from flows.demo import timing

WORKED = [
    ("validate", 0.0, 2.0),
    ("validate", 1.0, 3.0),
    ("train", 4.0, 9.0),
    ("lineage", 9.0, 11.0),
    ("reconcile", 11.5, 12.0),
]


def test_a_stage_has_the_seconds_of_all_its_subjects() -> None:
    """Subjects judged side by side each count in full."""
    assert timing.by_stage(WORKED)["validate"] == 4.0


def test_what_no_stage_covers_is_the_engines() -> None:
    """Gaps between stages, lineage and waiting for the server are the engines'; work is not."""
    assert timing.engines(WORKED, flows=13.0, server=3.0) == 3.0 + (13.0 - 3.0 - 5.0)


def test_without_stages_everything_is_the_engines() -> None:
    """Flows in which nothing worked cost what they took."""
    assert timing.engines([], flows=2.0, server=1.0) == 3.0
