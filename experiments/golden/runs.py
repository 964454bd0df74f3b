"""The command lines of the golden record.

Every run works in the same folder, in which `shared` is a link to the data of others and `data` holds the generated files. A run
writes into the folder of its name, which stands for `OUT` in its command line. The runs are made in this order; `needs` names
those whose output a run reads.
"""

from dataclasses import dataclass
from pathlib import Path

import data

DIGIT = ["fac", "fou", "kar", "pix", "zer"]
ACC = ["RNASeq2GeneNorm", "gistict", "RPPAArray", "Mutations", "miRNASeqGene"]


@dataclass
class Run:
    name: str
    command: str
    needs: tuple = ()
    # A seed: `--seed`, `--seeds`, or none.
    seeded: bool = True
    # Whether the command has the option `--threads`; an estimate depends on it, and `fixed` keeps it.
    threads: str = "yes"
    # The exit code.
    exit: int = 0


def views(pattern, *names):
    return " ".join(f"--view {name}={pattern.format(name)}" for name in names)


def prepare(folder: Path):
    """What the runs read and no run writes."""
    data.generate(folder / "data")
    data.classes(folder / "shared/3sources/3sources.disjoint.clist", folder / "data/3sources-truth.tsv")


def after_demo(folder: Path):
    """Two parts of the tables of `digit-files`."""
    for name in ["fou", "kar", "zer"]:
        parts = [folder / part / f"{name}.tsv" for part in ("data/first", "data/second")]
        data.split(folder / f"digit-files/{name}.tsv", *parts)


MASKED = f"fit {views('digit-files/{}.tsv', *DIGIT)} --mask digit-mask/mask.tsv -k 10 -o OUT"
THREE = f"fit {views('digit-files/{}.tsv', 'fou', 'kar', 'zer')} --mask three-mask/mask.tsv -k 10 -o OUT"
MIXED = f"fit {views('data/{}.npy', 'heavy', 'units', 'plain')} --mask data/mixed-mask.tsv -k 5 -o OUT"
LARGE = f"fit {views('data/large-{}.npy', 'a', 'b')} --mask data/large-mask.tsv -o OUT"
WIDE = f"{views('data/wide-{}.npy', 'a', 'b')} --mask data/wide-mask.tsv"
LIMIT = "--memory 32MB"
TEXT = "--view a=data/wide-a.npy --view text=data/wide-text.tsv"
HOLES = "--view a=data/holes-a.npy --view b=data/holes-b.tsv --view c=data/holes-c.npy"
TRUTH = "--truth digit-files/truth.tsv"
DIGIT_NEEDS = ("digit-files", "digit-mask")
THREE_NEEDS = ("digit-files", "three-mask")
SOURCES = f"{views('shared/3sources/3sources_{}.mtx', 'bbc', 'guardian', 'reuters')} --transpose"
OMICS = f"{views('shared/omics/acc/{}.tsv.gz', *ACC)} --id-prefix 12"
BRCA = f"{views('shared/omics/brca/{}.tsv.gz', 'expression', 'methylation', 'mirna')} --id-prefix 16"

RUNS = [
    # Data and masks.
    Run("digit-files", "demo --files OUT", seeded=False),
    Run("digit-mask", f"simulate {views('digit-files/{}.tsv', *DIGIT)} --missing 0.5 -o OUT --json",
        ("digit-files",), threads="no"),
    Run("three-mask", f"simulate {views('digit-files/{}.tsv', 'fou', 'kar', 'zer')} --missing 0.3 --missing kar=0.5 -o OUT",
        ("digit-files",), threads="no"),
    Run("counts-mask", f"simulate {views('data/counts-{}.mtx', 'a', 'b')} --missing 0.2 --missing b=0.4 -o OUT", threads="no"),
    Run("news-mask", "simulate --view 1=shared/newsgroups/20newsgroups.mat::X{1} --view 2=shared/newsgroups/20newsgroups.mat::X{2} "
        "--view 3=shared/newsgroups/20newsgroups.mat::X{3} --transpose --missing 0.3 -o OUT", threads="no"),

    # Digit with half of every view missing.
    Run("digit-default", f"{MASKED} {TRUTH}", DIGIT_NEEDS),
    Run("digit-paper", f"{MASKED} {TRUTH} --preset paper", DIGIT_NEEDS),
    Run("digit-off", f"{MASKED} {TRUTH} --neighbours off --verbose", DIGIT_NEEDS),
    Run("digit-refine-f32", f"{THREE} --neighbours refine --precision f32", THREE_NEEDS),
    Run("digit-embed", f"{THREE} --neighbours embed --no-assess", THREE_NEEDS),
    Run("digit-runs", f"{THREE} --runs 5", THREE_NEEDS),
    Run("digit-weights", f"fit {views('digit-files/{}.tsv', 'fou', 'kar', 'zer')} --view noise=data/noise.npy -k 10 "
        "--view-weights learned --neighbours off -o OUT", ("digit-files",)),
    Run("digit-relative", f"{THREE} --penalty relative --alpha 0.5 --beta 0.2 --neighbours off", THREE_NEEDS),
    Run("digit-penalty", f"{THREE} --penalty auto --neighbours off", THREE_NEEDS),
    Run("digit-latent", f"{THREE} --latent 14 --max-iter 40 --tol 1e-5", THREE_NEEDS),
    Run("digit-multiplicative", f"{THREE} --solver multiplicative --init paper --neighbours off --max-iter 25", THREE_NEEDS),
    Run("digit-paper-aligned", f"{THREE} --preset paper --init aligned --solver coordinate --alpha 1 --beta 0.01", THREE_NEEDS),
    Run("digit-budget", f"{THREE} --neighbours-budget 0.4 --format parquet --embedding npy", THREE_NEEDS),
    Run("digit-again", "fit --config digit-latent/summary.json -o OUT --json", ("digit-latent",), seeded=False),

    # Scalings.
    Run("scale-auto", f"{MIXED} --truth data/mixed-truth.tsv"),
    Run("scale-1", f"{MIXED} --scale heavy=log --scale units=min-max-unit --scale plain=none"),
    Run("scale-2", f"{MIXED} --scale heavy=log-unit --scale units=z-score --scale plain=unit --neighbours off"),
    Run("scale-3", f"{MIXED} --scale heavy=tf-idf --scale units=z-score-unit --scale plain=min-max --neighbours off"),

    # Missing cells.
    Run("holes", f"fit {HOLES} -k 6 --truth data/holes-truth.tsv -o OUT"),
    Run("holes-paper", f"fit {HOLES} -k 6 --preset paper --runs 2 -o OUT"),
    Run("holes-mean", f"fit {HOLES} -k 6 --nan mean --neighbours off -o OUT"),
    Run("nci60", f"fit {views('shared/omics/nci60/{}.tsv.gz', 'transporter', 'compound')} -k 9 "
        "--truth shared/omics/nci60/truth.tsv -o OUT"),

    # Sparse counts.
    Run("counts", f"fit {views('counts-mask/{}.mtx', 'a', 'b')} -k 5 --truth data/counts-truth.tsv -o OUT", ("counts-mask",)),
    Run("counts-f32", f"fit {views('data/counts-{}.mtx', 'a', 'b')} -k 5 --precision f32 --scale unit --neighbours off "
        "--view-weights learned -o OUT"),
    Run("long-counts", f"fit {views('data/long-{}.mtx', 'a', 'b')} -k 6 --neighbours off --max-iter 15 -o OUT"),
    Run("3sources", f"fit {SOURCES} -k 6 --truth data/3sources-truth.tsv -o OUT"),
    Run("3sources-paper", f"fit {SOURCES} -k 6 --preset paper -o OUT"),
    Run("newsgroups", f"fit {views('news-mask/{}.tsv', '1', '2', '3')} -k 5 -o OUT", ("news-mask",)),

    # Other real data.
    Run("wikipedia", f"fit --view text=shared/wikipedia/raw_features.mat::T_te --view image=shared/wikipedia/raw_features.mat::I_te "
        "-k 10 -o OUT"),
    Run("scene15", f"fit {views('shared/more/scene15/{}.npy', 'view1', 'view2', 'view3')} -k 15 "
        "--truth shared/more/scene15/truth.tsv -o OUT"),
    Run("acc", f"fit {OMICS} -k 3 --clinical shared/omics/acc/clinical.tsv "
        "--survival days_to_death/days_to_last_followup,vital_status -o OUT"),
    Run("brca-top", f"fit {BRCA} -k 3 --top-features 100 --truth shared/omics/brca/truth.tsv::cluster -o OUT"),

    # Many instances, many clusters.
    Run("large-k100", f"{LARGE} -k 100 --scale min-max-unit --neighbours refine --no-assess --truth data/large-truth.tsv"),
    Run("large-k12", f"{LARGE} -k 12 --precision f32"),

    # Few.
    Run("tiny-n", f"fit {views('data/tiny-{}.tsv', 'a', 'b')} -k 12 -o OUT"),
    Run("tiny-1", f"fit {views('data/tiny-{}.tsv', 'a', 'b')} -k 1 -o OUT"),
    Run("tiny-13", f"fit {views('data/tiny-{}.tsv', 'a', 'b')} -k 13 -o OUT", exit=3),
    Run("tiny-name", f"fit {views('data/tiny-{}.tsv', 'a', 'b')} -k 3 --scale c=unit -o OUT", exit=2),

    # In batches, and on disk.
    Run("online", f"fit {WIDE} -k 8 --online --batch 1300 --truth data/wide-truth.tsv -o OUT"),
    Run("memory", f"fit {WIDE} -k 8 --truth data/wide-truth.tsv -o OUT"),
    Run("disk", f"fit {WIDE} -k 8 {LIMIT} --neighbours off --truth data/wide-truth.tsv -o OUT"),
    Run("disk-refine", f"fit {WIDE} -k 8 {LIMIT} --neighbours refine -o OUT"),
    # That the limit has the data stay on disk: `from_disk` is true.
    Run("disk-inspect", f"inspect {WIDE} -k 8 {LIMIT} --json", seeded=False, threads="fixed"),
    Run("disk-text", f"fit {TEXT} -k 8 --memory 36MB --neighbours off -o OUT"),
    Run("disk-text-inspect", f"inspect {TEXT} -k 8 --memory 36MB --json", seeded=False, threads="fixed"),

    # What is done with a model.
    Run("predict", f"predict digit-default {views('digit-files/{}.tsv', 'fou', 'zer')} -o OUT/labels.tsv "
        "--contributions OUT/contributions.tsv", ("digit-default",), seeded=False),
    Run("predict-paper", f"predict digit-paper {views('digit-files/{}.tsv', 'kar', 'pix')} --json", ("digit-paper",), seeded=False),
    Run("predict-holes", f"predict holes {HOLES}", ("holes",), seeded=False),
    Run("first", f"fit {views('data/first/{}.tsv', 'fou', 'kar')} -k 10 --neighbours off -o OUT", ("digit-files",)),
    Run("update", f"update first {views('data/second/{}.tsv', 'fou', 'kar')} -o OUT", ("first",), seeded=False),
    Run("update-view", f"update first {views('data/second/{}.tsv', 'fou', 'zer')} --add-view zer --memory-factor 0.5 -o OUT --json",
        ("first",), seeded=False),
    Run("impute", f"impute digit-weights {views('digit-files/{}.tsv', 'fou', 'kar', 'zer')} --mask three-mask/mask.tsv "
        "--only-gaps -o OUT --json", ("digit-weights", "three-mask"), seeded=False),
    Run("impute-holes", f"impute holes {HOLES} -o OUT", ("holes",), seeded=False),
    Run("evaluate", "evaluate digit-default --truth digit-files/truth.tsv --json", ("digit-default",), seeded=False, threads="no"),
    Run("report", "report holes --truth data/holes-truth.tsv -o OUT/report.html", ("holes",), seeded=False, threads="no"),

    # Other commands.
    Run("select", f"select {views('data/{}.npy', 'heavy', 'units', 'plain')} --mask data/mixed-mask.tsv -k 2..6 --resamples 4 "
        "-o OUT --json"),
    Run("compare", f"compare {views('shared/omics/nutrimouse/{}.tsv.gz', 'gene', 'lipid')} "
        "--truth shared/omics/nutrimouse/truth.tsv::diet --missing 0,0.3 --seeds 2 --json -o OUT", seeded=False),
    Run("inspect", f"inspect {OMICS} -k 3", seeded=False, threads="fixed"),
    Run("inspect-large", f"inspect {views('data/large-{}.npy', 'a', 'b')} -k 100 --workers 4 --json", seeded=False, threads="fixed"),
]
