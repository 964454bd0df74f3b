"""Views with their instances: IDs, the order of results, and instances that are missing from every view."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daimc._matrix import View, present_rows
from daimc._settings import unseen_of
from daimc._tables import is_range, text_of


@dataclass
class Names:
    """The IDs of instances, in the order of results."""

    #: The IDs as the user passed them.
    given: Sequence[Hashable]
    #: The pandas index, if the IDs come from pandas.
    index: Any = None
    #: The IDs as strings, by which views are joined and which files store; `None` if the library uses row numbers.
    texts: list[str] | None = None


class Data:
    """Views of the same instances: row by row, or joined by ID."""

    def __init__(self, views: list[View], names: Names, by_id: bool = False) -> None:
        self.views = views
        self.names = names
        #: Whether instances are joined by ID rather than row by row.
        self.by_id = by_id
        self._position = {text: number for number, text in enumerate(names.texts or [])} if by_id else {}
        #: For each instance whether it is present in any view.
        self.seen = np.zeros(len(names.given), dtype=bool)
        for view in views:
            self.seen |= self.rows(view) >= 0
        #: The positions of the instances that are passed to the library, in the library's order.
        self._found = np.flatnonzero(self.seen)

    @property
    def joined(self) -> bool:
        """Whether the library identifies instances by ID. It then omits instances that are missing from every view."""
        return self.by_id or not self.seen.all()

    def rows(self, view: View) -> NDArray[np.intp]:
        """For each instance its row in a view; -1 if it is missing from the view."""
        here = np.flatnonzero(present_rows(view))
        rows = np.full(len(self.names.given), -1, dtype=np.intp)
        if self.by_id:
            position = np.fromiter((self._position[text] for text in view.ids or []), dtype=np.intp, count=view.shape[0])
            rows[position[here]] = here
        else:
            rows[here] = here
        return rows

    def without_empty_views(self) -> Data:
        """Removes the views in which no instance is present."""
        views = [view for view in self.views if present_rows(view).any()]
        if 0 < len(views) < len(self.views):
            self.views = views
            if self.by_id:  # the library orders instances by their first appearance in the remaining views
                listed = dict.fromkeys(self._position[text] for view in views for text in view.ids or [])
                self._found = np.array([position for position in listed if self.seen[position]], dtype=np.intp)
        return self

    def resolve_unseen(self, handle_unseen: Any) -> Data:
        """Raises an error if an instance is missing from every view, or keeps such instances from the library."""
        keep = unseen_of(handle_unseen) == "keep"
        if self.seen.all():
            return self
        if keep and not self.seen.any():
            raise ValueError("no instance is present in any view: every row of every view is missing")
        if not keep:
            first = int(np.flatnonzero(~self.seen)[0])
            raise ValueError(
                f"instance '{self.names.given[first]}' is missing in every view; {np.count_nonzero(~self.seen)} such "
                "instance(s) in total: remove them, or keep them without a cluster with handle_unseen='keep'"
            )
        if not self.by_id:
            texts = self.names.texts or [str(row) for row in range(len(self.seen))]
            for view in self.views:
                view.ids = texts
        return self

    def gather(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Reorders rows from the order of results to that of the library, without instances missing from every view."""
        return rows[self._found]

    def spread(self, found: NDArray[Any], blank: float) -> NDArray[Any]:
        """Reorders rows from the order of the library to that of results. Instances missing from every view get `blank`."""
        if np.array_equal(self._found, np.arange(len(self.seen))):
            return found
        spread = np.full((len(self.seen), *found.shape[1:]), blank, dtype=found.dtype)
        spread[self._found] = found
        return spread


def row_numbers(instances: int) -> Names:
    """The names of instances without IDs."""
    return Names(np.arange(instances))  # type: ignore[arg-type]


def own_names(given: Sequence[Hashable], index: Any) -> Names:
    """The IDs of the rows of a single table. Nothing is joined by them, so they may contain duplicates."""
    if is_range(index):
        return Names(given, index)
    try:
        texts = [text_of("X", row, value) for row, value in enumerate(given)]
    except ValueError:
        return Names(given, index)
    return Names(given, index, texts if len(set(texts)) == len(texts) else None)


def join_names(views: list[View], given: list[Sequence[Hashable]], indexes: list[Any]) -> Names:
    """The IDs of all views in the order of first appearance, including IDs of missing rows."""
    first: dict[str, int] = {}  # ID → position among the concatenated rows of all views
    begin = 0
    for view in views:
        _check_unique(view)
        for row, text in enumerate(view.ids or []):
            first.setdefault(text, begin + row)
        begin += view.shape[0]
    everything = [value for own in given for value in own]
    names = Names([everything[position] for position in first.values()], texts=list(first))
    if all(index is not None for index in indexes):
        # The first index itself, if it contains every instance: appending others may change its type.
        whole = len(first) == len(indexes[0])
        names.index = indexes[0] if whole else indexes[0].append(indexes[1:])[list(first.values())]
    return names


def alike(views: list[View]) -> str | None:
    """A warning if IDs of different views differ only in case, blanks or leading zeros."""
    counts = Counter(text for view in views for text in view.ids or [])
    first: dict[str, str] = {}
    pairs = []
    for text, count in counts.items():
        if count < len(views):  # an ID of every view was already joined with its counterparts
            other = first.setdefault(_canonical(text), text)
            if other != text:
                pairs.append((other, text))
    if not pairs:
        return None
    lists = [set(view.ids or []) for view in views]
    pairs = [pair for pair in pairs if not any(own.issuperset(pair) for own in lists)]
    if not pairs:
        return None
    one, other = pairs[0]
    homes = [next(view.name for view, own in zip(views, lists) if text in own) for text in pairs[0]]
    return (
        f"IDs that look alike are treated as different instances: '{one}' in view '{homes[0]}' and '{other}' in view "
        f"'{homes[1]}' ({len(pairs)} such pair(s)); write them identically if they are the same"
    )


def _canonical(text: str) -> str:
    """An ID without the differences that spreadsheets and other programs introduce."""
    text = re.sub(r"\.0+$", "", text.strip().casefold())
    return re.sub(r"\d+", lambda digits: digits.group().lstrip("0") or "0", text)


def array_of(ids: Sequence[Hashable]) -> NDArray[Any]:
    """IDs as an array of integers or of strings if all have that type, of objects otherwise."""
    kinds = {type(label) for label in ids}
    if len(kinds) == 1 and kinds <= {int, str, np.int64}:
        return np.asarray(ids)
    return np.fromiter(ids, dtype=object, count=len(ids))


def _check_unique(view: View) -> None:
    rows: dict[str, int] = {}
    for row, text in enumerate(view.ids or []):
        before = rows.setdefault(text, row)
        if before != row:
            raise ValueError(
                f"view '{view.name}': the ID '{text}' is in row {before} and in row {row}: an instance has one row in a view"
            )
