//! The kiosk's executable.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    guidepost::run()
}
