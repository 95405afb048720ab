"""The order of sessions while rows come in, go, and are read again."""

from __future__ import annotations

import random
from typing import Any

import pytest

from triage.fleet.listing import FILTERS, ORDERS, Listing
from triage.fleet.row import Row


def row(path: str, status: str = "crashed", **fields: Any) -> Row:
    return Row(path, "native", status, **fields)


def paths(listing: Listing) -> list[str]:
    return [shown.path for shown in listing.shown]


def some(count: int) -> list[Row]:
    chance = random.Random(7)
    return [
        row(
            f"logs/{chance.random()}",
            chance.choice(["crashed", "clean", "doubtful", "live", "refused", "unreadable"]),
            owed=4,
            unknown=chance.randrange(4),
            danger=chance.randrange(3),
            last_time=chance.choice([None, "odd", f"2026-05-20T09:00:{chance.randrange(60):02}Z"]),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("filter", FILTERS)
def test_rows_that_come_one_by_one_stand_as_if_they_were_sorted_at_the_end(order: str, filter: str) -> None:
    listing, rows = Listing(), some(300)
    listing.arrange(order=order, filter=filter)
    for one in rows:
        listing.put(one)
    assert listing.shown == sorted(filter_(rows, filter), key=ORDERS[order])
    assert [listing.index_of(path) for path in paths(listing)] == list(range(len(listing.shown)))


def filter_(rows: list[Row], name: str) -> list[Row]:
    return [one for one in rows if FILTERS[name](one)]


def test_a_row_that_comes_again_takes_the_place_of_the_older_one() -> None:
    listing = Listing()
    listing.put(row("b"))
    listing.put(row("a", "clean"))
    listing.put(row("b", "clean"))
    assert paths(listing) == ["a", "b"] and len(listing.rows) == 2


def test_a_row_that_was_read_again_stays_where_it_stood_until_the_list_is_arranged() -> None:
    listing = Listing()
    for path in "abc":
        listing.put(row(path, unknown=1))
    listing.renew(row("a", "clean"))
    listing.put(row("bb", unknown=1))
    assert paths(listing) == ["a", "b", "bb", "c"] and listing.shown[0].status == "clean"
    assert listing.index_of("a") == 0
    listing.arrange()
    assert paths(listing) == ["b", "bb", "c", "a"]


def test_a_session_that_was_not_listed_is_added_when_it_is_read_again() -> None:
    listing = Listing()
    listing.renew(row("a"))
    assert paths(listing) == ["a"]


def test_what_is_gone_is_dropped_wherever_it_stood() -> None:
    listing = Listing()
    for path in "abcd":
        listing.put(row(path))
    listing.renew(row("b", "clean"))
    listing.drop(["b", "nothing"])
    assert paths(listing) == ["a", "c", "d"] and listing.index_of("b") is None
    listing.keep({"c"})
    assert paths(listing) == ["c"] and list(listing.rows) == ["c"]


def test_a_text_is_looked_for_in_all_that_a_row_says_and_upper_case_is_minded() -> None:
    listing = Listing()
    listing.put(row("logs/One", title="Ship it", why="dispatched on line 9"))
    listing.put(row("logs/two", "clean", boundary="terminal"))
    for text, found in {
        "ship": ["logs/One"],
        "Ship": ["logs/One"],
        "SHIP": [],
        "one": ["logs/One"],
        "line 9": ["logs/One"],
        "terminal": ["logs/two"],
        "crashed": ["logs/One"],
        "native": ["logs/One", "logs/two"],
        "": ["logs/One", "logs/two"],
    }.items():
        listing.arrange(text=text)
        assert paths(listing) == found, text


def test_the_newest_stand_first_and_what_has_no_time_last() -> None:
    listing = Listing()
    listing.arrange(order="newest")
    for path, time in {"a": None, "b": "2026-05-19T08:00:00Z", "c": 1779264000000, "d": "today"}.items():
        listing.put(row(path, last_time=time))
    assert paths(listing) == ["c", "b", "a", "d"]
