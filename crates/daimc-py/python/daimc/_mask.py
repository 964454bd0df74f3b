"""Masks: which instances each view shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daimc._matrix import View
from daimc._tables import is_pandas, text_of


def apply_mask(mask: Any, views: list[View], joined: bool) -> None:
    """Tells the views what a mask says: `True` or 1 where an instance is there."""
    if mask is None:
        return
    if is_pandas(mask) and (joined or set(mask.columns) == {view.name for view in views}):
        _by_name(mask, views, joined)
    elif isinstance(mask, Mapping):
        _known(list(mask), views)
        for view in views:
            if view.name in mask:
                view.present = _bits(mask[view.name], view, np.shape(mask[view.name]))
    elif isinstance(mask, (list, tuple)) and all(isinstance(part, np.ndarray) and part.ndim == 1 for part in mask):
        if len(mask) != len(views):
            raise ValueError(f"mask has {len(mask)} vectors for {len(views)} view(s): give one for each view")
        for view, part in zip(views, mask):
            view.present = _bits(part, view, part.shape)
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
            view.present = _bits(whole[:, number], view, whole[:, number].shape)


def _by_name(mask: Any, views: list[View], joined: bool) -> None:
    """A DataFrame: a column for each view, and IDs as index where views are joined."""
    _known([str(column) for column in mask.columns], views)
    rows = {text_of("mask", row, value): row for row, value in enumerate(mask.index)}
    for view in views:
        if view.name not in mask.columns:
            continue
        bits = mask[view.name].to_numpy()
        if joined:
            absent = [text for text in view.ids or [] if text not in rows]
            if absent:
                raise ValueError(
                    f"mask has no row for instance '{absent[0]}' of view '{view.name}' ({len(absent)} in all)"
                )
            bits = bits[[rows[text] for text in view.ids or []]]
        view.present = _bits(bits, view, bits.shape)


def _known(names: list[str], views: list[View]) -> None:
    strange = [name for name in names if name not in {view.name for view in views}]
    if strange:
        known = ", ".join(view.name for view in views)
        raise ValueError(f"mask names '{strange[0]}', but the views are {known}")


def _bits(given: Any, view: View, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    bits = np.asarray(given)
    if shape != view.shape[:1]:
        raise ValueError(f"mask of view '{view.name}' has shape {shape}, but the view has {view.shape[0]} rows")
    if bits.dtype != bool:
        wrong = [row for row, value in enumerate(bits.tolist()) if value not in (0, 1)]
        if wrong:
            raise ValueError(
                f"mask of view '{view.name}', row {wrong[0]}: {bits[wrong[0]]!r}; write True or 1 where the instance is "
                "there, False or 0 where it is missing"
            )
    return np.ascontiguousarray(bits.astype(bool))
