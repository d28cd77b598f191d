//! The models stand in `tests/loom`: this library is empty.
