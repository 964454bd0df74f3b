"""Progress of a fit: the log and the progress bar."""

import logging
import sys
import time

logger = logging.getLogger("daimc")

_WIDTH = 24
#: Minimum number of seconds between two updates of the bar.
_PAUSE = 0.1


class _Line:
    """A progress line on standard error.

    In a terminal and in a notebook the line is overwritten; otherwise a new line is written from time to time, so that
    log files stay readable.
    """

    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose
        self._rewrites = verbose and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        self._drawn = float("-inf")
        self._text = ""

    @property
    def wanted(self) -> bool:
        return self.verbose or logger.isEnabledFor(logging.DEBUG)

    def show(self, text: str, share: float | None = None) -> None:
        """Shows a text, with a bar if the share of finished work is known."""
        if not self.verbose:
            return
        bar = ""
        if share is not None:
            filled = round(_WIDTH * min(1.0, share))
            bar = "█" * filled + "░" * (_WIDTH - filled) + " "
        self._text = f"daimc {bar}{text}"
        now = time.monotonic()
        if now - self._drawn < (_PAUSE if self._rewrites else 10 * _PAUSE):
            return
        self._drawn = now
        self._draw()

    def close(self, outcome: str) -> None:
        if not self.verbose:
            return
        self._text = f"{self._text}, {outcome}" if self._text else f"daimc: {outcome}"
        self._draw()
        if self._rewrites:
            print(file=sys.stderr)

    def _draw(self) -> None:
        if self._rewrites:
            # Blanks overwrite the rest of a longer line.
            print(f"\r{self._text:<100}", end="", file=sys.stderr, flush=True)
        else:
            print(self._text, file=sys.stderr, flush=True)


class Progress(_Line):
    """Shows the iterations of a fit and writes each to the log."""

    def __init__(self, verbose: bool, iterations: int | None = None, runs: int = 1) -> None:
        super().__init__(verbose)
        self.iterations = iterations
        self.runs = runs

    def __call__(self, run: int, number: int, objective: float, change: float, seconds: float) -> None:
        logger.debug(
            "run %d, iteration %d: objective %.6g, change %.2e, %.2f s", run, number, objective, change, seconds
        )
        share, most = (None, "") if self.iterations is None else (number / self.iterations, f"/{self.iterations}")
        runs = f"run {run}/{self.runs}, " if self.runs > 1 else ""
        self.show(f"{runs}iteration {number}{most}, J {objective:.5g}, {seconds:.1f} s", share)


class Fits(_Line):
    """Shows the number of finished fits and writes each to the log."""

    def __call__(self, done: int, of: int) -> None:
        logger.debug("fit %d of %d", done, of)
        self.show(f"fit {done}/{of}", done / of)
