//! The Python names of the library's options.

/// Options whose names differ: the name in the library and the name in Python.
const RENAMED: [(&str, &str); 9] = [
    ("clusters", "n_clusters"),
    ("latent", "n_components"),
    ("initialisation", "init"),
    ("start", "init"),
    ("max_iterations", "max_iter"),
    ("tolerance", "tol"),
    ("restarts", "n_init"),
    ("resamples", "n_resamples"),
    ("threads", "n_jobs"),
];

/// Returns the name in Python of an option of the library.
pub fn in_python(library: &'static str) -> &'static str {
    RENAMED.iter().find(|(name, _)| *name == library).map_or(library, |(_, python)| python)
}
