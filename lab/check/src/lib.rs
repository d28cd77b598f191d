//! Judges of engines.
