"""What a fit tells while it runs."""

import logging
import sys
import time

logger = logging.getLogger("daimc")

_WIDTH = 24
#: Seconds between two pictures of the bar.
_PAUSE = 0.1


class Progress:
    """Draws a bar on standard error and writes each iteration to the log.

    In a terminal and in a notebook the bar is one line that is drawn again and again; elsewhere a line is
    written now and then, so that files stay readable. Where the largest number of iterations is not known, there is
    no bar.
    """

    def __init__(self, verbose: bool, iterations: int | None = None, runs: int = 1) -> None:
        self.verbose = verbose
        self.iterations = iterations
        self.runs = runs
        self._rewrites = verbose and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        self._drawn = float("-inf")
        self._text = ""

    @property
    def wanted(self) -> bool:
        return self.verbose or logger.isEnabledFor(logging.DEBUG)

    def __call__(self, run: int, number: int, objective: float, change: float, seconds: float) -> None:
        logger.debug(
            "run %d, iteration %d: objective %.6g, change %.2e, %.2f s", run, number, objective, change, seconds
        )
        if not self.verbose:
            return
        bar, most = "", ""
        if self.iterations is not None:
            filled = round(_WIDTH * min(1.0, number / self.iterations))
            bar, most = "█" * filled + "░" * (_WIDTH - filled) + " ", f"/{self.iterations}"
        runs = f"run {run}/{self.runs}, " if self.runs > 1 else ""
        self._text = f"daimc {bar}{runs}iteration {number}{most}, J {objective:.5g}, {seconds:.1f} s"
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
            # Blanks cover what is left of a longer line.
            print(f"\r{self._text:<100}", end="", file=sys.stderr, flush=True)
        else:
            print(self._text, file=sys.stderr, flush=True)
