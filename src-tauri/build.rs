//! Puts the pages, the icons and the list of what the page may call into the app.

/// Every command of `commands.rs`; the page may call those that `capabilities/kiosk.json` allows.
const COMMANDS: &[&str] = &[
    "info",
    "subscribe",
    "tasks",
    "task_orders",
    "redeem_by_hand",
    "cameras",
    "choose_source",
    "save_settings",
    "sign_in",
    "send_sms",
    "captcha",
    "sms_login",
    "sign_out",
    "open_visitor_page",
    "next_preview",
];

fn main() {
    // With a pattern of our own tauri-build does not watch the folder by itself; nor does it watch the pages.
    println!("cargo:rerun-if-changed=src-tauri/capabilities");
    println!("cargo:rerun-if-changed=ui/dist/kiosk");
    tauri_build::try_build(
        tauri_build::Attributes::new()
            .capabilities_path_pattern("./src-tauri/capabilities/**/*")
            .app_manifest(tauri_build::AppManifest::new().commands(COMMANDS)),
    )
    .expect("tauri.conf.json, the capabilities and the icons are as they should be");
}
