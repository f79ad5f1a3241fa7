//! The command line of the scanner.
fn main() {}
