//! What the server says of itself is what it does: schemathesis makes requests out of the description, fitting and unfitting
//! ones, and looks for a 500 and for answers that the description does not have.

use api_tests::{Order, Stores, Venue};
use guidepost_server::accounts::create;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use wire::{Mobile, TenantId};

/// How many cases schemathesis makes for an operation, besides those at the edges of each field.
const EXAMPLES: &str = "30";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs schemathesis, which `cargo xtask test` installs"]
async fn no_answer_is_outside_the_description() {
    let program = std::env::var_os("GUIDEPOST_SCHEMATHESIS").expect("GUIDEPOST_SCHEMATHESIS names the program");
    let (venue, _gateway) = Venue::open_with_gateway(Stores::SqliteMemory, |config| {
        let limits = &mut config.limits.consume;
        limits.operator = 1_000_000;
        limits.ip = 1_000_000;
        limits.by_code = 1_000_000;
        limits.freeze = 1_000_000;
        config.limits.sms.wrong = 1_000_000;
        config.sms.daily_cap = 1_000_000;
    })
    .await;
    // One person who may do everything, so that every operation gets past its door.
    let mobile = "13800000001";
    let password = wire::Secret::new("correct horse battery".to_owned());
    let app = venue.server.app();
    let everything = Some(&Mobile::parse(mobile).unwrap());
    create::admin(app, TenantId(1), "everything", everything, Some(password.clone())).await.unwrap();
    venue.put_guide(mobile, "everything").await;
    venue.put_task("T1", &[mobile]).await;
    venue.put_order("BK202608010001", &Order::paid()).await;
    let body = json!({"username": "everything", "password": password.expose()});
    let session = venue.nobody().post("/api/auth/login", &body).await.ok();
    let (key_name, key) = venue.machine().credential.clone().unwrap();

    let folder = tempfile::tempdir().unwrap();
    let status = Command::new(program)
        // Its data base of examples and its reports go where nobody keeps them.
        .current_dir(folder.path())
        .arg("--config-file")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("schemathesis.toml"))
        .arg("run")
        .arg(format!("http://{}/api/openapi.json", venue.server.address()))
        .args(["--header", &format!("Authorization: Bearer {}", session["token"].as_str().unwrap())])
        .args(["--header", &format!("{key_name}: {key}")])
        // Signing out would close the door for all that follows.
        .args(["--exclude-path", "/api/auth/logout", "--max-examples", EXAMPLES, "--seed", "1", "--no-color"])
        .status()
        .unwrap();
    assert!(status.success(), "schemathesis found something: see above");
}
