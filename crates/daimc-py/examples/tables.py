# %% [markdown]
# # Tables of several laboratories, joined by patient
#
# Three tables as in multi-omics: gene expression, proteins, clinical values. Each laboratory has data of other patients, in
# its own order.

# %%
import numpy as np
import pandas as pd

from daimc import DAIMC, metrics, plots

rng = np.random.default_rng(4)
patients = np.array([f"TCGA-{i:04}" for i in range(400)])
subtype = rng.integers(0, 4, len(patients))


def laboratory(name, features, informative, noise, share):
    """A table in which some features depend on the subtype, for a share of the patients in random order."""
    centres = np.zeros((4, features))
    centres[:, :informative] = rng.normal(size=(4, informative))
    values = centres[subtype] + noise * rng.normal(size=(len(patients), features))
    seen = rng.permutation(len(patients))[: int(share * len(patients))]
    return pd.DataFrame(values[seen], index=patients[seen], columns=[f"{name}{i}" for i in range(features)])


tables = {
    "rna": laboratory("gene", 500, 60, 0.8, 0.8),
    "protein": laboratory("protein", 120, 30, 0.8, 0.6),
    "clinic": laboratory("value", 12, 6, 1.0, 0.9),
}
seen = set().union(*(table.index for table in tables.values()))
print(f"{len(seen)} patients, {len(set.intersection(*(set(t.index) for t in tables.values())))} of them in every table")

# %%
model = DAIMC(4, random_state=0, runs=5).fit(tables)
result = pd.DataFrame({"cluster": model.labels_, "confidence": model.confidence_}, index=model.ids_)
truth = pd.Series(subtype, index=patients)[result.index]
print(f"accuracy {metrics.accuracy(truth, result['cluster']):.2f}")

# %% [markdown]
# ## Which features matter
#
# The informative features are the first ones of each table. Does the model rank them highest?

# %%
for view, informative in (("rna", 60), ("protein", 30), ("clinic", 6)):
    relevance = model.feature_relevance_[model.view_names_.index(view)]
    best = np.argsort(-relevance)[:informative]
    print(f"{view}: {np.mean(best < informative):.0%} of the {informative} most relevant are informative")

# %% [markdown]
# ## A patient with data from one laboratory only

# %%
new = {"protein": tables["protein"].iloc[:1].rename(index=lambda _: "new patient")}
print("new patient: cluster", model.predict(new)[0])
made = model.impute(new)
print("imputed expression:", made["rna"].iloc[0, :3].round(2).to_dict())

# %%
plots.missingness(tables)
plots.features(model, "rna")
