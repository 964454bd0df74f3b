# %% [markdown]
# # Sparse text in two languages
#
# Short documents about six subjects, as word counts, similar to 20 Newsgroups. Every document is written in one language or
# both: a language is a view, and a document without a translation is missing from the other view. The data stay sparse.

# %%
import numpy as np
from scipy import sparse

from daimc import DAIMC, metrics

rng = np.random.default_rng(2)
documents, subjects = 3000, 6
subject = rng.integers(0, subjects, documents)


def language(words):
    """Word counts by Zipf's law, with the words of the document's subject ten times as frequent."""
    common = 1.0 / np.arange(1, words + 1)
    rows, columns = [], []
    own = [rng.choice(np.arange(50, words), words // 40, replace=False) for _ in range(subjects)]
    for document in range(documents):
        weights = common.copy()
        weights[own[subject[document]]] *= 10
        length = rng.integers(40, 160)
        columns.append(rng.choice(words, length, p=weights / weights.sum()))
        rows.append(np.full(length, document))
    rows, columns = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(documents, words))


english, french = language(4000), language(5000)
written = np.ones((documents, 2), dtype=bool)
untranslated = rng.random(documents) < 0.6
written[np.flatnonzero(untranslated), rng.integers(0, 2, untranslated.sum())] = False
print(f"{written.all(axis=1).mean():.0%} of the documents exist in both languages")

# %% [markdown]
# The fit weights counts by tf-idf, as the scaling of the model shows.

# %%
model = DAIMC(subjects, random_state=0).fit({"english": english, "french": french}, mask=written)
print(model.scaling("english"))
print(f"accuracy {metrics.accuracy(subject, model.labels_):.2f}")

# %% [markdown]
# Either language alone assigns a document to a cluster, mostly to the same one.

# %%
by_english = model.predict({"english": english})
by_french = model.predict({"french": french})
print(f"the languages agree on {np.mean(by_english == by_french):.0%} of the documents")
