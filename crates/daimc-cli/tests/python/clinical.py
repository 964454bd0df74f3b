"""Holds clinical.tsv and survival.tsv of a fit against scipy and lifelines: clinical.py RESULT TABLE [TIME,EVENT]."""

import sys

import numpy as np
import pandas as pd
from lifelines import KaplanMeierFitter
from lifelines.statistics import multivariate_logrank_test
from scipy import stats

result, table = sys.argv[1], pd.read_csv(sys.argv[2], sep=None, engine="python", index_col=0)
clusters = pd.read_csv(f"{result}/labels.tsv", sep="\t", index_col="id")["cluster"]
table = table.reindex(clusters.index)
tests = pd.read_csv(f"{result}/clinical.tsv", sep="\t", index_col="column")
tests = tests[tests["test"].notna()]
seen = set()


def close(ours, theirs, what):
    assert np.allclose(ours, theirs, rtol=1e-6, atol=1e-300), (what, ours, theirs)


for column, test in tests.iterrows():
    known = table[column].notna()
    values, groups = table[column][known], clusters[known]
    assert known.sum() == test["instances"], column
    seen.add(test["test"])
    if test["test"] == "kruskal-wallis":
        statistic, p = stats.kruskal(*[values[groups == c] for c in sorted(groups.unique())])
        close([test["statistic"], test["p"]], [statistic, p], column)
        close(test["effect"], statistic / (len(values) - 1), column)
        continue
    counts = pd.crosstab(values, groups).to_numpy()
    statistic, p, freedom, expected = stats.chi2_contingency(counts, correction=False)
    close(test["statistic"], statistic, column)
    close(test["effect"], stats.contingency.association(counts, method="cramer"), column)
    sparse = (expected < 1).any() or (expected < 5).mean() > 0.2
    assert sparse == (test["test"] != "chi-squared"), column
    if test["test"] == "chi-squared":
        close([test["p"], test["df"]], [p, freedom], column)
    elif test["test"] == "fisher":
        close(test["p"], stats.fisher_exact(counts).pvalue, column)
    else:
        # Two samples of permutations differ by chance.
        draws = stats.PermutationMethod(n_resamples=9999, rng=np.random.default_rng(1))
        p = stats.chi2_contingency(counts, correction=False, method=draws).pvalue
        assert abs(test["p"] - p) < 6 * np.sqrt(p * (1 - p) / 9999) + 3e-4, (column, test["p"], p)
close(tests["p_adjusted"], stats.false_discovery_control(tests["p"]), "adjusted")

if len(sys.argv) > 3:
    times, event = sys.argv[3].rsplit(",", 1)
    time = table[times.split("/")].bfill(axis=1).iloc[:, 0]
    known = time.notna() & table[event].notna()
    time, event, groups = time[known], table[event][known].astype(bool), clusters[known]
    import json

    ours = json.load(open(f"{result}/summary.json"))["clinical"]["survival"]["log_rank"]
    theirs = multivariate_logrank_test(time, groups, event)
    close([ours["statistic"], ours["p"]], [theirs.test_statistic, theirs.p_value], "log-rank")
    assert ours["freedom"] == theirs.degrees_of_freedom
    curves = pd.read_csv(f"{result}/survival.tsv", sep="\t")
    assert set(curves["cluster"]) == set(groups)
    for cluster, own in curves.groupby("cluster"):
        here = groups == cluster
        fitter = KaplanMeierFitter().fit(time[here], event[here])
        at = own["time"].to_numpy()
        close(own["survival"], fitter.survival_function_.loc[at].iloc[:, 0], "survival")
        interval = fitter.confidence_interval_.loc[at]
        # lifelines leaves the interval open where all or none survive.
        open_ended = own["survival"].isin([0.0, 1.0]).to_numpy()
        close(own[["lower", "upper"]].to_numpy()[~open_ended], interval.to_numpy()[~open_ended], "interval")
        rows = fitter.event_table.loc[at]
        assert (own[["at_risk", "events", "censored"]].to_numpy() == rows[["at_risk", "observed", "censored"]].to_numpy()).all()
print(len(tests), "columns:", " ".join(sorted(seen)))
