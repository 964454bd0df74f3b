"""Arrays that lie on a graphics card: of CuPy, PyTorch, JAX, Numba and whoever else says so by `__cuda_array_interface__`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daimc._daimc import CardRows, fetch

#: The number by which DLPack knows memory of an NVIDIA card.
_CUDA = 2


def is_on_card(X: Any) -> bool:
    """Whether X is an array on a card."""
    if isinstance(X, (np.ndarray, list, tuple)):
        return False
    return hasattr(X, "__cuda_array_interface__") or _is_dlpack_alone(X)


def _is_dlpack_alone(X: Any) -> bool:
    device = getattr(X, "__dlpack_device__", None)
    return callable(device) and device()[0] == _CUDA


def shape_of(X: Any, name: str) -> tuple[int, ...]:
    """The shape of an array on a card."""
    return tuple(_interface(X, name)["shape"])


def card_rows(X: Any, name: str, device: str) -> CardRows:
    """The rows of a matrix on a card, where they are, for a fit on `device`."""
    if device == "cpu":
        raise TypeError(
            f"view '{name}' is a {_kind(X)} on a graphics card, and device='cpu' is the processor: fit with "
            "device='cuda', or give a copy in memory, such as x.get() of CuPy or x.cpu() of PyTorch"
        )
    interface = _interface(X, name)
    dtype, (rows, columns) = np.dtype(interface["typestr"]), interface["shape"]
    if dtype not in (np.float32, np.float64) or not dtype.isnative:
        raise TypeError(
            f"view '{name}' has dtype {dtype} on a graphics card, where single and double precision are read: give "
            "x.astype('float32'), or x.float() of PyTorch"
        )
    size = dtype.itemsize
    row, column = interface.get("strides") or (columns * size, size)
    row = columns * size if rows == 1 else row
    if (columns > 1 and column != size) or row < columns * size or row % size:
        raise ValueError(
            f"view '{name}': the values of a row do not stand one after another on the graphics card: give "
            "cupy.ascontiguousarray(x), or x.contiguous() of PyTorch"
        )
    return CardRows(interface["data"][0], (rows, columns), row // size, dtype == np.float64, X)


def host_copy(X: Any, name: str) -> NDArray[Any]:
    """A copy in memory of an array on a card, whatever its type and order."""
    interface = _interface(X, name)
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = interface.get("strides") or [dtype.itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    reach = [(length - 1) * stride for length, stride in zip(shape, strides)]
    first, last = sum(min(0, far) for far in reach), sum(max(0, far) for far in reach)
    values = fetch(interface["data"][0] + first, last - first + dtype.itemsize)
    copy: NDArray[Any] = np.ndarray(shape, dtype, buffer=values, offset=-first, strides=strides)
    return copy


def _interface(X: Any, name: str) -> dict[str, Any]:
    if not hasattr(X, "__cuda_array_interface__"):
        raise TypeError(
            f"view '{name}' is a {_kind(X)}, which tells by DLPack alone that it is on a graphics card: give "
            "cupy.from_dlpack(x), or torch.from_dlpack(x)"
        )
    interface: dict[str, Any] = X.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise TypeError(f"view '{name}' is a {_kind(X)} with a mask: write NaN where values are missing, or give mask=")
    return interface


def _kind(X: Any) -> str:
    return f"{type(X).__module__.split('.')[0]}.{type(X).__name__}"
