//! The main job in the real window: a visitor's page in a phone's browser, its picture before the kiosk's camera, the
//! answer on the screen and in the database. And signing in: see `sign_in.rs`.

mod secret_service;
mod sign_in;
mod stage;

use stage::{Camera, Stage};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// One window at a time: answers leave the screen by themselves, and two at once on a small machine are slow to come.
pub(crate) static ALONE: Mutex<()> = Mutex::const_new(());

/// So long a kiosk shows its own success again as that success; only after it is a code "used".
const OWN_SUCCESS: Duration = Duration::from_secs(10);

fn full_width(digits: &str) -> String {
    let digit = |c: char| "０１２３４５６７８９".chars().nth(c.to_digit(10).expect("a digit") as usize);
    digits.chars().filter_map(digit).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitors_code_is_admitted_once_and_then_already_redeemed() -> anyhow::Result<()> {
    let _alone = ALONE.lock().await;
    let mut stage = Stage::open("admitted-once")?;
    let camera = Camera::new(&stage)?;
    let kiosk = stage.kiosk(camera.folder()).await?;
    kiosk.shows("ready", 0).await?;
    let order = kiosk.orders()[0].clone();
    let before = kiosk.in_database(&order).await?;
    assert_eq!(before.status, "paid");
    assert_eq!(before.audit, []);
    let phone = stage.phone().await?;
    let (picture, digits) = phone.open(kiosk.visitor_page(&order)?).await?;
    stage.keep(&phone.client, "1-visitors-page").await?;
    stage.keep(&kiosk.client, "2-ready").await?;

    camera.sees(&picture)?;
    let admitted = kiosk.shows("admitted", 0).await?;
    let since = Instant::now();
    stage.keep(&kiosk.client, "3-admitted").await?;
    assert_eq!(admitted.text("text"), format!("{} 人", before.party_size));
    assert_eq!(admitted.text("name"), before.visitor_name);
    assert_eq!(admitted.text("tail"), &order[order.len() - 6..]);
    let states: Vec<_> = kiosk.shown().await?.into_iter().map(|shown| shown.state).collect();
    let at = states.iter().position(|state| state == "admitted").unwrap();
    assert_eq!(states[at - 1], "reading", "the mark comes before the answer: {states:?}");
    let after = kiosk.in_database(&order).await?;
    assert_eq!(after.status, "consumed");
    assert_eq!(after.audit, [(0, Some("scan".to_owned()))]);

    // The phone is still in sight, and nothing more comes of that: armed again, at rest, one attempt.
    let seen = kiosk.shown().await?.len();
    kiosk.shows("ready", seen - 1).await?;
    camera.sees_nothing()?;
    // The wait itself is what is tested here: out of sight, and no longer "a moment ago".
    tokio::time::sleep((OWN_SUCCESS + Duration::from_secs(3)).saturating_sub(since.elapsed())).await;
    assert_eq!(kiosk.in_database(&order).await?, after);
    stage.keep(&kiosk.client, "4-ready-again").await?;

    let seen = kiosk.shown().await?.len();
    camera.sees(&picture)?;
    let used = kiosk.shows("already_redeemed", seen).await?;
    stage.keep(&kiosk.client, "5-already-redeemed").await?;
    assert!(used.text("text").starts_with("已核销"), "{used:?}");
    assert!(!used.text("by").is_empty(), "by whom: {used:?}");
    let later = kiosk.in_database(&order).await?;
    assert_eq!(later.status, "consumed");
    assert_eq!(later.audit, [(0, Some("scan".to_owned())), (2002, Some("scan".to_owned()))]);
    let page = kiosk.client.source().await?;
    assert!(!page.contains(&digits), "the code stands nowhere on the kiosk's page");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_foreign_code_a_valid_one_is_admitted() -> anyhow::Result<()> {
    let _alone = ALONE.lock().await;
    let mut stage = Stage::open("foreign-then-valid")?;
    let camera = Camera::new(&stage)?;
    let kiosk = stage.kiosk(camera.folder()).await?;
    kiosk.shows("ready", 0).await?;
    let order = kiosk.orders()[1].clone();
    let phone = stage.phone().await?;
    let (picture, _) = phone.open(kiosk.visitor_page(&order)?).await?;

    camera.sees_code("https://example.org/a-menu")?;
    kiosk.shows("foreign", 0).await?;
    stage.keep(&kiosk.client, "1-foreign").await?;
    assert_eq!(kiosk.in_database(&order).await?.audit, []);

    let seen = kiosk.shown().await?.len();
    camera.sees(&picture)?;
    let admitted = kiosk.shows("admitted", seen).await?;
    stage.keep(&kiosk.client, "2-admitted").await?;
    let after = kiosk.in_database(&order).await?;
    assert_eq!(admitted.text("name"), after.visitor_name);
    assert_eq!(after.status, "consumed");
    assert_eq!(after.audit, [(0, Some("scan".to_owned()))]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_hand_with_full_width_digits_without_a_camera_and_without_a_home() -> anyhow::Result<()> {
    use fantoccini::Locator;
    let _alone = ALONE.lock().await;
    let mut stage = Stage::open("by-hand")?;
    let missing = stage.folder.path().join("no-such-camera");
    let kiosk = stage.kiosk_without_home(&missing).await?;
    kiosk.shows("out_of_order", 0).await?;
    stage.keep(&kiosk.client, "1-out-of-order").await?;
    let order = kiosk.orders()[0].clone();
    let phone = stage.phone().await?;
    let (_, digits) = phone.open(kiosk.visitor_page(&order)?).await?;

    kiosk.client.find(Locator::Css("[data-testid=by-hand]")).await?.click().await?;
    let search = kiosk.client.wait().for_element(Locator::Css("[data-testid=order-search]")).await?;
    search.send_keys(&order).await?;
    let item =
        format!("[data-testid=order-item][data-order='{order}'], [data-testid=order-typed][data-order='{order}']");
    kiosk.client.wait().for_element(Locator::Css(&item)).await?.click().await?;
    let field = kiosk.client.wait().for_element(Locator::Css("[data-testid=code-field]")).await?;
    field.send_keys(&full_width(&digits)).await?;
    stage.keep(&kiosk.client, "2-by-hand").await?;
    kiosk.client.find(Locator::Css("[data-testid=submit]")).await?.click().await?;

    let admitted = kiosk.shows("admitted", 0).await?;
    stage.keep(&kiosk.client, "3-admitted").await?;
    let after = kiosk.in_database(&order).await?;
    assert_eq!(admitted.text("text"), format!("{} 人", after.party_size));
    assert_eq!(admitted.text("name"), after.visitor_name);
    assert_eq!(after.status, "consumed");
    assert_eq!(after.audit, [(0, Some("manual".to_owned()))]);
    Ok(())
}
