"""Arrays in GPU memory: of CuPy, PyTorch, JAX, Numba and other libraries with `__cuda_array_interface__`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daimc._daimc import GpuRows, fetch

#: The device type of CUDA memory in DLPack.
_CUDA = 2


def is_on_gpu(X: Any) -> bool:
    """Whether X is an array in GPU memory."""
    if isinstance(X, (np.ndarray, list, tuple)):
        return False
    return hasattr(X, "__cuda_array_interface__") or _is_dlpack_only(X)


def _is_dlpack_only(X: Any) -> bool:
    device = getattr(X, "__dlpack_device__", None)
    return callable(device) and device()[0] == _CUDA


def shape_of(X: Any, name: str) -> tuple[int, ...]:
    """The shape of a GPU array."""
    return tuple(_interface(X, name)["shape"])


def gpu_rows(X: Any, name: str, device: str) -> GpuRows:
    """The rows of a GPU matrix for a fit on `device`. They are not copied."""
    if device == "cpu":
        raise TypeError(
            f"view '{name}' is a {_kind(X)} on a GPU, which a fit with device='cpu' cannot read: fit with "
            "device='cuda', or pass a copy in host memory, such as x.get() of CuPy or x.cpu() of PyTorch"
        )
    interface = _interface(X, name)
    dtype, (rows, columns) = np.dtype(interface["typestr"]), interface["shape"]
    if dtype not in (np.float32, np.float64) or not dtype.isnative:
        raise TypeError(
            f"view '{name}' has dtype {dtype}; on a GPU, only single and double precision are supported: pass "
            "x.astype('float32'), or x.float() of PyTorch"
        )
    size = dtype.itemsize
    row, column = interface.get("strides") or (columns * size, size)
    row = columns * size if rows == 1 else row
    if (columns > 1 and column != size) or row < columns * size or row % size:
        raise ValueError(
            f"view '{name}': the values of a row are not contiguous in GPU memory: pass cupy.ascontiguousarray(x), or "
            "x.contiguous() of PyTorch"
        )
    return GpuRows(interface["data"][0], (rows, columns), row // size, dtype == np.float64, X)


def host_copy(X: Any, name: str) -> NDArray[Any]:
    """Copies a GPU array of any type and memory layout to host memory."""
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
            f"view '{name}' is a {_kind(X)} on a GPU, which supports DLPack only: pass cupy.from_dlpack(x), or "
            "torch.from_dlpack(x)"
        )
    interface: dict[str, Any] = X.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise TypeError(f"view '{name}' is a {_kind(X)} with a mask: set missing values to NaN, or pass mask=")
    return interface


def _kind(X: Any) -> str:
    return f"{type(X).__module__.split('.')[0]}.{type(X).__name__}"
