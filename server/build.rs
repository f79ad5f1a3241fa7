//! Compiles the server again when the built pages change: they are embedded in release builds.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=../ui/dist");
}
