"""Views with their instances: who they are, in which order results come, and whom no view shows."""

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

    #: As they were given.
    given: Sequence[Hashable]
    #: As an index of pandas, where they come from pandas.
    index: Any = None
    #: Their texts, by which views are joined and which files hold; `None` where they are row numbers to the library.
    texts: list[str] | None = None


class Data:
    """Views of the same instances: row by row, or joined by ID."""

    def __init__(self, views: list[View], names: Names, by_id: bool = False) -> None:
        self.views = views
        self.names = names
        #: Whether instances are joined by ID rather than row by row.
        self.by_id = by_id
        self._place = {text: number for number, text in enumerate(names.texts or [])} if by_id else {}
        #: Whether any view shows an instance.
        self.seen = np.zeros(len(names.given), dtype=bool)
        for view in views:
            self.seen |= self.rows(view) >= 0
        #: The instances that the library sees, in its order.
        self._found = np.flatnonzero(self.seen)

    @property
    def joined(self) -> bool:
        """Whether the library tells instances apart by ID; it then leaves out whom no view shows."""
        return self.by_id or not self.seen.all()

    def rows(self, view: View) -> NDArray[np.intp]:
        """For each instance the row of a view that shows it; -1 where the view does not."""
        here = np.flatnonzero(present_rows(view))
        rows = np.full(len(self.names.given), -1, dtype=np.intp)
        if self.by_id:
            place = np.fromiter((self._place[text] for text in view.ids or []), dtype=np.intp, count=view.shape[0])
            rows[place[here]] = here
        else:
            rows[here] = here
        return rows

    def without_empty_views(self) -> Data:
        """The same instances without the views that show none of them."""
        views = [view for view in self.views if present_rows(view).any()]
        if 0 < len(views) < len(self.views):
            self.views = views
            if self.by_id:  # the library goes by the order of the views that are left
                listed = dict.fromkeys(self._place[text] for view in views for text in view.ids or [])
                self._found = np.array([place for place in listed if self.seen[place]], dtype=np.intp)
        return self

    def settle_unseen(self, handle_unseen: Any) -> Data:
        """Decides about instances that no view shows: they are an error, or they are kept out of the library's sight."""
        keep = unseen_of(handle_unseen) == "keep"
        if self.seen.all():
            return self
        if keep and not self.seen.any():
            raise ValueError("no view shows any instance: every row is missing in every view")
        if not keep:
            first = int(np.flatnonzero(~self.seen)[0])
            raise ValueError(
                f"instance '{self.names.given[first]}' is missing in every view; {np.count_nonzero(~self.seen)} such "
                "instance(s) in all: leave them out, or keep them without a cluster with handle_unseen='keep'"
            )
        if not self.by_id:
            texts = self.names.texts or [str(row) for row in range(len(self.seen))]
            for view in self.views:
                view.ids = texts
        return self

    def gather(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows in the order of results, in the order of the library: those of instances that are seen."""
        return rows[self._found]

    def spread(self, found: NDArray[Any], blank: float) -> NDArray[Any]:
        """What the library found for the instances that are seen, in the order of results, with blanks for the others."""
        if np.array_equal(self._found, np.arange(len(self.seen))):
            return found
        spread = np.full((len(self.seen), *found.shape[1:]), blank, dtype=found.dtype)
        spread[self._found] = found
        return spread


def row_numbers(instances: int) -> Names:
    """Instances that have no IDs."""
    return Names(np.arange(instances))  # type: ignore[arg-type]


def own_names(given: Sequence[Hashable], index: Any) -> Names:
    """The IDs of the rows of one table. Nothing is joined by them, so they need not tell instances apart."""
    if is_range(index):
        return Names(given, index)
    try:
        texts = [text_of("X", row, value) for row, value in enumerate(given)]
    except ValueError:
        return Names(given, index)
    return Names(given, index, texts if len(set(texts)) == len(texts) else None)


def join_names(views: list[View], given: list[Sequence[Hashable]], indexes: list[Any]) -> Names:
    """The IDs of all views in the order in which they are first listed, also where the row is missing."""
    first: dict[str, int] = {}  # with its place among the rows of all views, one view after another
    begin = 0
    for view in views:
        _check_unique(view)
        for row, text in enumerate(view.ids or []):
            first.setdefault(text, begin + row)
        begin += view.shape[0]
    everything = [value for own in given for value in own]
    names = Names([everything[place] for place in first.values()], texts=list(first))
    if all(index is not None for index in indexes):
        # The first index itself where it lists everybody: the others may be of another type.
        whole = len(first) == len(indexes[0])
        names.index = indexes[0] if whole else indexes[0].append(indexes[1:])[list(first.values())]
    return names


def alike(views: list[View]) -> str | None:
    """A sentence about IDs of different views that differ in case, blanks and leading zeros only, if there are such."""
    counts = Counter(text for view in views for text in view.ids or [])
    first: dict[str, str] = {}
    pairs = []
    for text, count in counts.items():
        if count < len(views):  # whoever is in every view has met its like
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
        f"IDs that look alike are taken for different instances: '{one}' in view '{homes[0]}' and '{other}' in view "
        f"'{homes[1]}' ({len(pairs)} such pair(s)); write them alike if they are the same"
    )


def _canonical(text: str) -> str:
    """An ID without what spreadsheets and programs change about it."""
    text = re.sub(r"\.0+$", "", text.strip().casefold())
    return re.sub(r"\d+", lambda digits: digits.group().lstrip("0") or "0", text)


def array_of(ids: Sequence[Hashable]) -> NDArray[Any]:
    """IDs as an array: of numbers or of text where they are that, of objects otherwise."""
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
