//! Window tests.
