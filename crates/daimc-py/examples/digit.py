# %% [markdown]
# # Digit: five views, half of each missing
#
# Two thousand handwritten digits, described by five sets of features. How does the accuracy fall as more of every view is
# missing, and how does it compare with other methods?

# %%
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from daimc import DAIMC, datasets, metrics, plots, simulate_missing
from daimc.baselines import Baseline

digit = datasets.load_digit()

# %% [markdown]
# ## Accuracy as views lose instances
#
# The published algorithm stops after 30 iterations, whether or not it has converged.

# %%
warnings.simplefilter("ignore", ConvergenceWarning)
methods = {
    "DAIMC": lambda seed: DAIMC(10, random_state=seed),
    "DAIMC, as published": lambda seed: DAIMC(10, preset="paper", random_state=seed),
    "weighted semi-NMF": lambda seed: Baseline("wsnmf", 10, random_state=seed),
    "OPIMC": lambda seed: Baseline("opimc", 10, random_state=seed),
    "k-means side by side": lambda seed: Baseline("concatenation", 10, random_state=seed),
}
found = {}
for missing in (0.0, 0.3, 0.5):
    mask = simulate_missing(digit.views, missing, random_state=1)
    for name, make in methods.items():
        labels = make(0).fit_predict(digit.views, mask=mask)
        found[name, missing] = metrics.accuracy(digit.target, labels)
    print(f"{missing:.0%} missing:", ", ".join(f"{name} {found[name, missing]:.2f}" for name in methods))

# %% [markdown]
# ## Uncertain instances
#
# Confidence needs no labels and shows which instances to check.

# %%
mask = simulate_missing(digit.views, 0.5, random_state=1)
model = DAIMC(10, random_state=0, runs=5).fit(digit.views, mask=mask)
matched = metrics.matching(digit.target, model.labels_)
right = np.array([matched.get(label, -1) for label in model.labels_]) == digit.target
order = np.argsort(model.confidence_, kind="stable")
for part, rows in zip(("least", "most"), (order[:500], order[-500:])):
    print(f"{part} clear quarter: {right[rows].mean():.0%} right")

# %%
plots.embedding(model, labels=digit.target)
plots.convergence(model)
