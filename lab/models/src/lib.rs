//! An empty library: the models are in `tests/loom`.
