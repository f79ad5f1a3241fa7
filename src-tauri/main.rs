//! The kiosk.
fn main() {}
