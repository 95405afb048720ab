"""The pictures in the README are those of the program as it is."""

from __future__ import annotations

from tests.screenshots import PICTURES, ROOT, pictures


def test_the_screenshots_are_up_to_date() -> None:
    stale = [
        name
        for name, svg in pictures().items()
        if not (ROOT / "screenshots" / f"{name}.svg").is_file()
        or (ROOT / "screenshots" / f"{name}.svg").read_text("utf-8") != svg
    ]
    assert not stale, f"run python -m tests.screenshots: {stale}"


def test_no_picture_is_left_over() -> None:
    assert {path.stem for path in (ROOT / "screenshots").glob("*.svg")} == set(PICTURES)
