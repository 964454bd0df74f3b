"""Masks: which instances are present in each view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daimc._matrix import View
from daimc._tables import is_foreign, is_pandas, is_polars, is_range, is_series, refuse_foreign, text_of


def apply_mask(mask: Any, views: list[View], joined: bool) -> None:
    """Sets the mask of each view; it is `True` or 1 where an instance is present."""
    if mask is None:
        return
    if not is_series(mask):
        refuse_foreign(mask, "mask")
    named = is_pandas(mask) or is_polars(mask)
    if named and (set(mask.columns) == {view.name for view in views} or (is_pandas(mask) and joined)):
        _known([str(column) for column in mask.columns], views)
        for view in views:
            if view.name in mask.columns:
                _set_mask(view, mask[view.name], joined)
    elif isinstance(mask, Mapping):
        _known(list(mask), views)
        for view in views:
            if view.name in mask:
                _set_mask(view, mask[view.name], joined)
    elif isinstance(mask, (list, tuple)) and all(_is_vector(part) for part in mask):
        if len(mask) != len(views):
            raise ValueError(f"mask has {len(mask)} vectors for {len(views)} view(s): pass one for each view")
        for view, part in zip(views, mask):
            _set_mask(view, part, joined)
    elif joined:
        raise ValueError(
            "mask: views that are joined by ID need a mask by ID: a DataFrame with their IDs as index and a column "
            "for each view, or a dictionary from views to vectors over their own rows"
        )
    else:
        whole = np.asarray(mask)
        expected = (views[0].shape[0], len(views))
        if whole.shape != expected:
            raise ValueError(f"mask has shape {whole.shape}, but must be instances × views, {expected}")
        for number, view in enumerate(views):
            _set_mask(view, mask.iloc[:, number] if is_pandas(mask) else whole[:, number], joined)


def refuse_mask_as_y(y: Any, views: list[View]) -> None:
    """Rejects a `y` that looks like a mask, since `y` is ignored. Classes, which scikit-learn passes as `y`, are accepted."""
    if y is not None and _looks_like_mask(y, views):
        raise TypeError("y looks like a mask of the views, but y is ignored: pass it by name, mask=")


def _looks_like_mask(y: Any, views: list[View]) -> bool:
    if isinstance(y, Mapping) or {str(column) for column in getattr(y, "columns", ())} == {view.name for view in views}:
        return True
    if is_foreign(y):
        return False  # data that are not in memory are not read for this check
    if isinstance(y, (list, tuple)) and len(y) and all(_is_vector(part) for part in y):
        return len(y) == len(views) and all(_is_binary(np.asarray(part)) for part in y)
    if isinstance(y, (list, tuple)) and not (len(y) and isinstance(y[0], (list, tuple))):
        return False  # one class for each instance, whatever they are
    try:
        table = np.asarray(y)
    except ValueError:  # lists of different lengths
        return False
    if table.ndim != 2 or len(views) not in table.shape or not _is_binary(table):
        return False
    # With one view, a column of 0 and 1 is a vector of classes; a column of True and False is a mask.
    return len(views) > 1 or table.dtype == bool


def _is_vector(part: Any) -> bool:
    return is_series(part) or (isinstance(part, np.ndarray) and part.ndim == 1)


def _is_binary(values: NDArray[Any]) -> bool:
    if values.dtype.kind not in "biufO":
        return False
    return values.dtype == bool or all(_is_bit(value) for value in values.ravel().tolist())


def _is_bit(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) and value in (0, 1)


def _set_mask(view: View, bits: Any, joined: bool) -> None:
    """Sets the mask of a view. A pandas Series is matched by ID if the view has IDs."""
    index = getattr(bits, "index", None) if is_series(bits) else None
    if index is not None and not callable(index) and view.ids is not None and (joined or not is_range(index)):
        rows: dict[str, int] = {}
        for row, value in enumerate(index):
            text = text_of("mask", row, value)
            if rows.setdefault(text, row) != row:
                raise ValueError(f"mask has two rows for instance '{text}', {rows[text]} and {row}")
        absent = [text for text in view.ids if text not in rows]
        if absent:
            raise ValueError(f"mask has no row for instance '{absent[0]}' of view '{view.name}' ({len(absent)} in all)")
        bits = bits.iloc[[rows[text] for text in view.ids]]
    view.present = _bits(np.asarray(bits), view)


def _known(names: list[str], views: list[View]) -> None:
    strange = [name for name in names if name not in {view.name for view in views}]
    if strange:
        known = ", ".join(view.name for view in views)
        raise ValueError(f"mask has an entry for '{strange[0]}', but the views are {known}")


def _bits(bits: NDArray[Any], view: View) -> NDArray[np.bool_]:
    if bits.shape != view.shape[:1]:
        raise ValueError(f"mask of view '{view.name}' has shape {bits.shape}, but the view has {view.shape[0]} rows")
    if bits.dtype != bool:
        wrong = [row for row, value in enumerate(bits.tolist()) if not _is_bit(value)]
        if wrong:
            raise ValueError(
                f"mask of view '{view.name}', row {wrong[0]}: {bits[wrong[0]]!r}; must be True or 1 where the instance "
                "is present, False or 0 where it is missing"
            )
    return np.ascontiguousarray(bits.astype(bool))
