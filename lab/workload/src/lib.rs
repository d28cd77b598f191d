//! What to ask of a cache: keys, distributions, operation mixes.
