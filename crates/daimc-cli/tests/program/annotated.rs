//! Annotated data at the command line.

use std::path::Path;
use std::process::Command;

use crate::common::{Folder, python};

/// A file of two modalities, of six and of four instances.
fn modalities() -> Folder {
    let folder = Folder::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../daimc-fuzz/corpus/hdf5/two.h5mu");
    folder.file("two.h5mu", std::fs::read(file).unwrap());
    folder
}

#[test]
fn a_file_of_modalities_is_as_many_views() {
    let folder = modalities();
    folder.good("fit --view two.h5mu -k 2 -o all --truth two.h5mu::rna/obs/kind");
    folder.good("fit --view two.h5mu::rna --view prot=two.h5mu::prot -k 2 -o each");
    let inputs = folder.json("all/summary.json")["inputs"].clone();
    assert_eq!(inputs, folder.json("each/summary.json")["inputs"]);
    let about = |at: usize| (inputs[at]["name"].as_str(), inputs[at]["shape"].clone());
    assert_eq!(about(0), (Some("rna"), serde_json::json!([6, 4])));
    assert_eq!(about(1), (Some("prot"), serde_json::json!([4, 2])));
    assert_eq!(folder.labels("all/labels.tsv"), folder.labels("each/labels.tsv"));
    assert_eq!(folder.labels("all/labels.tsv").len(), 6);
    // The recorded options are the given ones.
    folder.good("predict all --view two.h5mu -o new.tsv");
    assert_eq!(folder.labels("new.tsv").len(), 6);
}

#[test]
fn a_name_for_several_views_is_refused() {
    let folder = modalities();
    let message = folder.bad(2, "fit --view a=two.h5mu -k 2 -o out");
    assert!(message.contains("it holds 'rna', 'prot': pick one with ::NAME after the path"), "{message}");
    let message = folder.bad(3, "evaluate two.h5mu::kind --truth two.h5mu::rna/obs/kind");
    assert!(message.contains("two.h5mu::kind: has no column 'kind' in obs"), "{message}");
}

#[test]
fn results_go_back_into_a_copy_that_anndata_and_mudata_read() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    let script = r#"
import anndata as ad, mudata as md, numpy as np, pandas as pd, scipy.sparse as sp
rng = np.random.default_rng(0)
ids = [f"c{i}" for i in range(60)]
def cells(ids, genes, sparse):
    group = np.array([int(i[1:]) % 2 for i in ids])
    x = rng.random((len(ids), genes)); x[:, : genes // 2] += 3 * group[:, None]
    a = ad.AnnData(sp.csr_matrix(x) if sparse else x)
    a.obs_names, a.var_names = ids, [f"g{j}" for j in range(genes)]
    a.obs["kind"] = pd.Categorical(["x" if g else "y" for g in group])
    a.obs["age"] = np.arange(len(ids))
    a.obsm["X_pca"] = x[:, :2]
    return a
one = cells(ids, 8, True); one.layers["raw"] = one.X.copy(); one.write_h5ad("one.h5ad", compression="gzip")
md.MuData({"rna": cells(ids[:50], 8, True), "prot": cells(ids[20:], 6, False)}).write("two.h5mu")
"#;
    let check = r#"
import anndata as ad, mudata as md, numpy as np, pandas as pd
def check(before, after, out):
    labels = pd.read_csv(f"{out}/labels.tsv", sep="\t", index_col="id")
    labels.index = labels.index.astype(str)
    found = after.obs["daimc"]
    assert isinstance(found.dtype, pd.CategoricalDtype) and list(found.cat.categories) == ["0", "1"], found
    assert (found.astype(str) == labels["cluster"].astype(str).reindex(after.obs_names)).all()
    assert np.allclose(after.obs["daimc_confidence"], labels["confidence"].reindex(after.obs_names), atol=1e-5)
    v = pd.read_csv(f"{out}/embedding.tsv", sep="\t", index_col="id").reindex(after.obs_names)
    assert np.allclose(after.obsm["X_daimc"], v, rtol=1e-4, atol=1e-6)
    places = pd.read_csv(f"{out}/map.tsv", sep="\t", index_col="id").reindex(after.obs_names)
    assert np.allclose(after.obsm["X_daimc_map"], places, rtol=1e-4, atol=1e-6)
    old = [c for c in after.obs.columns if not c.startswith("daimc")]
    pd.testing.assert_frame_equal(after.obs[old], before.obs[old])
one, new = ad.read_h5ad("one.h5ad"), ad.read_h5ad("a/annotated.h5ad")
check(one, new, "a")
assert (one.X != new.X).nnz == 0 and np.array_equal(one.obsm["X_pca"], new.obsm["X_pca"]) and "raw" in new.layers
two, new = md.read("two.h5mu"), md.read("b/annotated.h5mu")
check(two, new, "b")
for name in two.mod:
    assert np.abs(two[name].X - new[name].X).sum() == 0
    pd.testing.assert_frame_equal(two[name].obs, new[name].obs)
check(one, ad.read_h5ad("c/annotated.h5ad"), "c")
new.write("again.h5mu")
"#;
    let run = |script: &str| {
        let output =
            Command::new(&python).current_dir(folder.path("")).args(["-c", script]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(script);
    folder.good("fit --view one.h5ad -k 2 -o a --annotate --no-assess");
    folder.good("fit --view two.h5mu -k 2 -o b --annotate --no-assess");
    // Again, into a file that has such columns already.
    folder.good("fit --view rna=a/annotated.h5ad --seed 1 -k 2 -o c --annotate --no-assess");
    run(check);
    assert_eq!(folder.list("a").iter().filter(|name| name.starts_with('.')).count(), 0);

    folder.file("t.csv", "id,x\na,1\nb,2\n");
    let message = folder.bad(2, "fit --view t.csv -k 2 -o d --annotate");
    assert_eq!(message, "--annotate: t.csv is no .h5ad or .h5mu file, to which the results could be added");
    let message = folder.bad(2, "fit --view one.h5ad --view t.csv -k 2 -o d --annotate");
    assert!(message.starts_with("--annotate: all views must be of one .h5ad or .h5mu file"), "{message}");
}
