"""The compiled half of the package."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from daimc._matrix import View

__all__ = [
    "Model",
    "Shard",
    "available_memory",
    "baseline",
    "baseline_options",
    "digit",
    "drive",
    "fit",
    "leaves",
    "matching",
    "merge",
    "missing",
    "options",
    "resolve",
    "scores",
    "select",
    "synthetic",
    "update",
]

_Each: TypeAlias = Callable[[int, int, float, float, float], object]

@final
class Shard:
    def __new__(cls, parts: Sequence[View], first: int, total: int, threads: int) -> Shard: ...
    @property
    def first(self) -> int: ...
    @property
    def total(self) -> int: ...
    def answer(self, number: int, request: bytes, setup: list[tuple[int, bytes]]) -> bytes: ...
    @property
    def instances(self) -> int: ...
    def place(
        self, request: bytes, setup: list[tuple[int, bytes]]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]: ...

def available_memory() -> int | None: ...
def drive(
    instances: int,
    clusters: int,
    seed: int,
    options: dict[str, Any],
    threads: int,
    memory: int | None,
    ask: Callable[[int, bytes, list[int]], bytes],
    each: _Each | None,
) -> tuple[Model, bytes]: ...
def leaves(instances: int) -> list[int]: ...
def merge(one: bytes, other: bytes) -> bytes: ...

@final
class Model:
    @staticmethod
    def from_bytes(bytes: bytes) -> Model: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def load(path: str | PathLike[str]) -> Model: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    @property
    def options(self) -> str: ...
    @property
    def views(self) -> list[str]: ...
    @property
    def ids(self) -> list[str] | None: ...
    @property
    def labels(self) -> NDArray[np.int64]: ...
    @property
    def confidence(self) -> NDArray[np.float64]: ...
    @property
    def latent(self) -> NDArray[np.float64]: ...
    @property
    def map(self) -> NDArray[np.float64] | None: ...
    @property
    def objective(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def history(self) -> NDArray[np.float64]: ...
    @property
    def converged(self) -> bool: ...
    def features(self, view: str) -> list[str] | None: ...
    def basis(self, view: str) -> NDArray[np.float64]: ...
    def alignment(self, view: str) -> NDArray[np.float64]: ...
    def relevance(self, view: str) -> NDArray[np.float64]: ...
    def weights(self, view: str) -> NDArray[np.float64]: ...
    def stability(self, view: str) -> NDArray[np.float64] | None: ...
    def scaling(self, view: str) -> tuple[str, str]: ...
    @property
    def neighbours(self) -> tuple[str, str]: ...
    @property
    def device(self) -> tuple[str, str | None]: ...
    @property
    def missingness(self) -> tuple[float, float, str | None]: ...
    @property
    def reproducibility(self) -> float | None: ...
    @property
    def significance(self) -> tuple[float, float, float, str | None] | None: ...
    @property
    def runs(self) -> list[tuple[int, int, float, float]]: ...
    def place(
        self, parts: Sequence[View], joined: bool, threads: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]: ...
    def contributions(self, parts: Sequence[View], joined: bool, threads: int) -> NDArray[np.float64]: ...
    def missing_cells(self, view: str) -> NDArray[np.int64]: ...
    def impute(
        self, parts: Sequence[View], joined: bool, view: str, latent: NDArray[np.float64], threads: int
    ) -> tuple[NDArray[np.float64], float | None, float | None]: ...
    def reconstruct(self, view: str, latent: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def misfit(self, parts: Sequence[View], joined: bool, threads: int) -> tuple[float, float]: ...
    def report(
        self,
        parts: Sequence[View],
        joined: bool,
        classes: list[str | None] | None,
        title: str | None,
        provenance: str,
        threads: int,
    ) -> tuple[str, float, float]: ...

def fit(
    parts: Sequence[View],
    joined: bool,
    clusters: int,
    seed: int,
    options: dict[str, Any],
    start: NDArray[np.float64] | None,
    device: str,
    precision: str,
    threads: int,
    each: _Each | None,
) -> tuple[Model, list[str], NDArray[np.float64]]: ...
def select(
    parts: Sequence[View],
    joined: bool,
    clusters: list[int],
    seed: int,
    options: dict[str, Any],
    resamples: int,
    hidden: float,
    threads: int,
    each: Callable[[int, int], object] | None,
) -> tuple[str, list[str]]: ...
def update(
    model: Model,
    parts: Sequence[View],
    joined: bool,
    named: bool,
    memory_factor: float,
    add_views: list[str],
    threads: int,
) -> tuple[
    Model,
    NDArray[np.float64],
    list[tuple[str, float, NDArray[np.float64]]],
    NDArray[np.int64],
    list[NDArray[np.int64]],
    NDArray[np.int64],
]: ...
def options() -> list[tuple[str, str]]: ...
def resolve(clusters: int, seed: int, given: dict[str, Any]) -> str: ...
def baseline(
    name: str,
    parts: Sequence[View],
    joined: bool,
    clusters: int,
    seed: int,
    options: dict[str, Any],
    threads: int,
    each: _Each | None,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]: ...
def baseline_options() -> list[tuple[str, list[str]]]: ...
def scores(truth: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, float]: ...
def matching(truth: NDArray[np.int64], labels: NDArray[np.int64]) -> list[tuple[int, int]]: ...
def missing(instances: int, rates: list[float], seed: int) -> NDArray[np.bool_]: ...
def digit() -> tuple[dict[str, NDArray[np.float32]], NDArray[np.int64]]: ...
def synthetic(
    instances: int, clusters: int, features: list[int], noise: float, seed: int
) -> tuple[dict[str, NDArray[np.float32]], NDArray[np.int64]]: ...
