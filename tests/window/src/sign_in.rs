//! A guide signs in by SMS in the real window, against a real server with a gateway that takes the code, and the app is
//! killed and started again: with a keyring, with the kernel's alone, with none, and with one that is locked.

use crate::ALONE;
use crate::secret_service::{bus, in_a_log_in, keyring, without_desktop, without_kernel_keyring};
use crate::stage::{Camera, Kiosk, Stage, app, wait};
use api_tests::{Gateway, Stores, Venue};
use fantoccini::Locator;
use sha2::{Digest, Sha256};
use sqlx::Row;
use std::collections::HashSet;

const MOBILE: &str = "13900000001";
const GUIDE: &str = "林悦";

/// Presses these on the keypad.
async fn press(kiosk: &Kiosk, keys: &str) -> anyhow::Result<()> {
    for key in keys.chars() {
        kiosk.click(&format!("key-{key}")).await?;
    }
    Ok(())
}

/// From the number to the ready screen, by touch alone; gives the code.
async fn sign_in(stage: &Stage, kiosk: &Kiosk, gateway: &Gateway) -> anyhow::Result<String> {
    kiosk.shows("signed_out", 0).await?;
    stage.keep(&kiosk.client, "1-signed-out").await?;
    press(kiosk, MOBILE).await?;
    let seen = gateway.messages().len();
    kiosk.click("sms-send").await?;
    wait("the gateway has the code", || Ok((gateway.messages().len() > seen).then_some(()))).await?;
    let code = gateway.code_of(&format!("+86{MOBILE}"));
    kiosk.client.wait().for_element(Locator::Css("[data-testid=sms][data-state=sent]")).await?;
    stage.keep(&kiosk.client, "2-sent").await?;
    let wrong = if code == "111111" { "222222" } else { "111111" };
    press(kiosk, wrong).await?;
    kiosk.client.wait().for_element(Locator::Css("[data-testid=sms-message][data-tone=bad]")).await?;
    assert!(kiosk.text("sms-message").await?.contains("还可以再试 4 次"));
    stage.keep(&kiosk.client, "3-wrong").await?;
    // The wrong one is selected: the first key takes its place.
    press(kiosk, &code).await?;
    kiosk.shows("ready", 0).await?;
    assert_eq!(kiosk.text("guide").await?, GUIDE);
    Ok(code)
}

async fn sign_out(stage: &Stage, kiosk: &Kiosk) -> anyhow::Result<()> {
    let seen = kiosk.shown().await?.len();
    kiosk.click("settings-open").await?;
    stage.keep(&kiosk.client, "settings").await?;
    kiosk.click("sign-out").await?;
    kiosk.shows("signed_out", seen).await?;
    stage.logged("kiosk", "signed out: ").await?;
    Ok(())
}

/// How long the window says that the session is kept.
async fn kept(kiosk: &Kiosk) -> anyhow::Result<String> {
    let element = kiosk.client.wait().for_element(Locator::Css("[data-testid=kiosk][data-kept]")).await?;
    Ok(element.attr("data-kept").await?.unwrap_or_default())
}

/// The first screen that is more than a start, and that none came between.
async fn first_screen(kiosk: &Kiosk) -> anyhow::Result<String> {
    let css = "[data-testid=kiosk]:not([data-state=starting])";
    let element = kiosk.client.wait().for_element(Locator::Css(css)).await?;
    let first = element.attr("data-state").await?.unwrap_or_default();
    let shown: Vec<_> = kiosk.shown().await?.into_iter().map(|one| one.state).collect();
    assert!(shown.iter().all(|state| *state == first || state == "starting" || state.is_empty()), "{shown:?}");
    Ok(first)
}

/// What must stand nowhere: the code, the whole number, and every token that there is.
struct Secrets {
    texts: [String; 2],
    /// SHA-256 of the tokens, as the server keeps them.
    hashes: HashSet<String>,
    token_length: usize,
}

impl Secrets {
    async fn of(venue: &Venue, code: &str) -> anyhow::Result<Self> {
        // A token that is known, to see that the search would find one.
        let token = venue.session_token(MOBILE).await;
        let rows = sqlx::query("SELECT token_hash FROM session").fetch_all(&venue.database().await).await?;
        let hashes = rows.iter().map(|row| row.get("token_hash")).collect();
        let secrets = Self { texts: [code.to_owned(), MOBILE.to_owned()], hashes, token_length: token.len() };
        assert_eq!(secrets.in_bytes(format!("\0x={token};{code}").as_bytes()), [code, "a token"]);
        Ok(secrets)
    }

    fn in_bytes(&self, bytes: &[u8]) -> Vec<&str> {
        let stands = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        let mut found: Vec<_> = self.texts.iter().map(String::as_str).filter(|text| stands(text)).collect();
        let of_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        for run in bytes.split(|byte| !of_token(byte)) {
            for part in run.windows(self.token_length) {
                let hash: String = Sha256::digest(part).iter().map(|byte| format!("{byte:02x}")).collect();
                if self.hashes.contains(&hash) {
                    found.push("a token");
                }
            }
        }
        found
    }

    /// Not in the web view's storages.
    async fn are_not_stored(&self, kiosk: &Kiosk) -> anyhow::Result<()> {
        let storages = "return JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])";
        let storages = kiosk.client.execute(storages, vec![]).await?.to_string();
        assert!(storages.contains("guidepost.sms.login."), "the wait is there: {storages}");
        assert_eq!(self.in_bytes(storages.as_bytes()), [""; 0], "{storages}");
        Ok(())
    }

    /// Not in any file or log.
    fn are_not_written(&self, stage: &Stage) -> anyhow::Result<()> {
        let files = stage.written()?;
        assert!(files.iter().any(|(path, _)| path.ends_with("kiosk.log")), "the log is looked at");
        for (path, bytes) in files {
            assert_eq!(self.in_bytes(&bytes), [""; 0], "{}", path.display());
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_finds_the_guide_in_the_keyring_until_they_sign_out() -> anyhow::Result<()> {
    let _alone = ALONE.lock().await;
    // A captcha at once: its workers have to run under the window's content security policy.
    let (venue, gateway) =
        Venue::open_with_gateway(Stores::SqliteMemory, |config| config.limits.sms.captcha_number = 0).await;
    let server = venue.base();
    let mut stage = Stage::open("sign-in-keyring")?;
    let camera = Camera::new(&stage)?;
    let bus = bus(&mut stage).await?;
    keyring(&mut stage, &bus, false).await?;

    let kiosk = stage.kiosk_at(&server, camera.folder(), Some(&bus), None).await?;
    let code = sign_in(&stage, &kiosk, &gateway).await?;
    assert_eq!(kept(&kiosk).await?, "keyring");
    stage.keep(&kiosk.client, "4-ready").await?;
    assert!(kiosk.client.find(Locator::Css("[data-testid=kept-notice]")).await.is_err(), "all is well");
    let secrets = Secrets::of(&venue, &code).await?;
    secrets.are_not_stored(&kiosk).await?;

    stage.kill_last();
    let kiosk = stage.kiosk_at(&server, camera.folder(), Some(&bus), None).await?;
    assert_eq!(first_screen(&kiosk).await?, "ready");
    assert_eq!(kiosk.text("guide").await?, GUIDE);
    stage.keep(&kiosk.client, "5-after-a-restart").await?;
    sign_out(&stage, &kiosk).await?;

    stage.kill_last();
    let kiosk = stage.kiosk_at(&server, camera.folder(), Some(&bus), None).await?;
    assert_eq!(first_screen(&kiosk).await?, "signed_out");
    assert!(kiosk.client.find(Locator::Css("[data-testid=why-sign-in]")).await.is_err(), "the guide signed out");
    secrets.are_not_written(&stage)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_secret_service_the_kernel_keeps_the_session_until_the_next_reboot() -> anyhow::Result<()> {
    let _alone = ALONE.lock().await;
    let (venue, gateway) = Venue::open_with_gateway(Stores::SqliteMemory, |_| {}).await;
    let server = venue.base();
    let mut stage = Stage::open("sign-in-kernel")?;
    let camera = Camera::new(&stage)?;
    let program = in_a_log_in(&stage, &app()?)?;
    let kiosk = stage.kiosk_at(&server, camera.folder(), None, Some(&program)).await?;
    let code = sign_in(&stage, &kiosk, &gateway).await?;
    if kept(&kiosk).await? == "memory" {
        eprintln!("NOT CHECKED: this machine does not let programs use the kernel's keyring");
        return Ok(());
    }
    assert_eq!(kept(&kiosk).await?, "until_reboot");
    assert!(kiosk.text("kept-notice").await?.contains("重启后需要再次登录"));
    stage.keep(&kiosk.client, "4-ready").await?;
    let secrets = Secrets::of(&venue, &code).await?;
    secrets.are_not_stored(&kiosk).await?;

    stage.kill_last();
    let kiosk = stage.kiosk_at(&server, camera.folder(), None, Some(&program)).await?;
    assert_eq!(first_screen(&kiosk).await?, "ready");
    assert_eq!(kept(&kiosk).await?, "until_reboot");
    sign_out(&stage, &kiosk).await?;

    stage.kill_last();
    let kiosk = stage.kiosk_at(&server, camera.folder(), None, Some(&program)).await?;
    assert_eq!(first_screen(&kiosk).await?, "signed_out");
    secrets.are_not_written(&stage)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_user_without_a_desktop_has_a_keyring_by_the_recipe_of_the_docs() -> anyhow::Result<()> {
    let _alone = ALONE.lock().await;
    let (venue, gateway) = Venue::open_with_gateway(Stores::SqliteMemory, |_| {}).await;
    let server = venue.base();
    let mut stage = Stage::open("sign-in-without-desktop")?;
    let camera = Camera::new(&stage)?;
    let program = without_desktop(&stage, &app()?)?;
    let kiosk = stage.kiosk_at(&server, camera.folder(), None, Some(&program)).await?;
    sign_in(&stage, &kiosk, &gateway).await?;
    assert_eq!(kept(&kiosk).await?, "keyring");

    stage.kill_last();
    let kiosk = stage.kiosk_at(&server, camera.folder(), None, Some(&program)).await?;
    assert_eq!(first_screen(&kiosk).await?, "ready");
    assert_eq!(kept(&kiosk).await?, "keyring");
    sign_out(&stage, &kiosk).await
}

/// Signs in where no place keeps the session: it says so, works, and asks again after a restart.
async fn kept_nowhere(name: &str, locked: bool, cause: &str) -> anyhow::Result<()> {
    let _alone = ALONE.lock().await;
    let (venue, gateway) = Venue::open_with_gateway(Stores::SqliteMemory, |_| {}).await;
    let server = venue.base();
    let mut stage = Stage::open(name)?;
    let camera = Camera::new(&stage)?;
    let bus = if locked { Some(bus(&mut stage).await?) } else { None };
    if let Some(bus) = &bus {
        // Once with a password, which makes the keyring; then nobody gives it.
        keyring(&mut stage, bus, false).await?;
        stage.kill_last();
        keyring(&mut stage, bus, true).await?;
    }
    let program = without_kernel_keyring(&stage, &app()?)?;
    let kiosk = stage.kiosk_at(&server, camera.folder(), bus.as_deref(), Some(&program)).await?;
    let code = sign_in(&stage, &kiosk, &gateway).await?;
    assert_eq!(kept(&kiosk).await?, "memory");
    assert!(kiosk.text("kept-notice").await?.contains("没有地方保存登录"));
    stage.keep(&kiosk.client, "4-ready").await?;
    let log = stage.logged("kiosk", "cannot keep the session").await?;
    let told = |line: &str| line.contains("cannot keep the session") && line.contains(cause);
    assert!(log.lines().any(told), "the log names the cause, {cause}: {log}");
    let secrets = Secrets::of(&venue, &code).await?;
    secrets.are_not_stored(&kiosk).await?;
    kiosk.click("kept-noticed").await?;
    assert!(kiosk.client.find(Locator::Css("[data-testid=kept-notice]")).await.is_err());

    stage.kill_last();
    let kiosk = stage.kiosk_at(&server, camera.folder(), bus.as_deref(), Some(&program)).await?;
    assert_eq!(first_screen(&kiosk).await?, "signed_out");
    assert!(kiosk.text("why-sign-in").await?.contains("保存登录的地方没有解锁或不可用"));
    stage.keep(&kiosk.client, "5-asked-again").await?;
    secrets.are_not_written(&stage)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_any_keyring_the_guide_hears_why_a_restart_asks_again() -> anyhow::Result<()> {
    kept_nowhere("sign-in-no-keyring", false, "/nonexistent").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_keyring_is_none() -> anyhow::Result<()> {
    kept_nowhere("sign-in-locked", true, "dismissed").await
}
