//! What the page may ask. Thin: each command checks its fields and hands on.

use crate::host_types::{CommandError, KioskEvent, KioskInfo, Settings, SourceChoice};
use crate::kiosk::Kiosk;
use crate::redeem::Incoming;
use crate::source;
use std::sync::Arc;
use std::time::Instant;
use tauri::State;
use tauri::ipc::{Channel, Response};
use wire::accounts::{CaptchaChallenge, SmsSent, Via};
use wire::api::{Entry, TaskOrder, TaskView};
use wire::{InvalidNumber, Mobile, OrderNo, RequestId, Secret, SmsCode, TaskNo, VerifyCode, trim};

type App<'a> = State<'a, Arc<Kiosk>>;

/// How things stand when the page starts.
#[tauri::command]
pub(crate) async fn info(kiosk: App<'_>) -> Result<KioskInfo, CommandError> {
    Ok(kiosk.info().await)
}

/// The page hears of everything that happens from now on.
#[tauri::command]
pub(crate) fn subscribe(kiosk: App<'_>, channel: Channel<KioskEvent>) {
    kiosk.screen.attach(move |event| {
        channel.send(event).inspect_err(|error| tracing::warn!(%error, "the page is gone")).is_ok()
    });
}

/// The guide's tasks of today.
#[tauri::command]
pub(crate) async fn tasks(kiosk: App<'_>) -> Result<Vec<TaskView>, CommandError> {
    let caller = kiosk.caller()?;
    kiosk.answer(&caller, kiosk.client.tasks(&caller).await)
}

/// A task's orders.
#[tauri::command]
pub(crate) async fn task_orders(kiosk: App<'_>, task_no: String) -> Result<Vec<TaskOrder>, CommandError> {
    let task_no = TaskNo::parse(&task_no).map_err(|why| bad_field("taskNo", why))?;
    let caller = kiosk.caller()?;
    kiosk.answer(&caller, kiosk.client.task_orders(&caller, &task_no).await)
}

/// Redeems what was typed; its answer comes as an event, as that of a scan does.
#[tauri::command]
pub(crate) fn redeem_by_hand(kiosk: App<'_>, order_no: String, verify_code: String) -> Result<(), CommandError> {
    let order_no = OrderNo::parse(&order_no).map_err(|why| bad_field("orderNo", why))?;
    let verify_code = VerifyCode::from_typed(&verify_code).map_err(|why| bad_field("verifyCode", why))?;
    kiosk.caller()?;
    kiosk.inbox.typed(Incoming { order_no, verify_code, entry: Entry::Manual, seen_at: Instant::now() })
}

/// The cameras of this machine.
#[tauri::command]
pub(crate) async fn cameras() -> Result<Vec<SourceChoice>, CommandError> {
    // Asking the devices may take its time.
    let cameras = blocking(scanner::cameras).await?;
    Ok(cameras.into_iter().map(|camera| SourceChoice::Camera { index: camera.index, name: camera.name }).collect())
}

/// Looks at another source, and remembers it.
#[tauri::command]
pub(crate) async fn choose_source(kiosk: App<'_>, choice: SourceChoice) -> Result<(), CommandError> {
    if let SourceChoice::Pictures { path } = &choice
        && trim(path).is_empty()
    {
        return Err(bad_field("path", InvalidNumber::Empty));
    }
    let kiosk = kiosk.inner().clone();
    blocking(move || {
        kiosk.settings.change(|settings| settings.source = Some(choice.clone()));
        kiosk.eye.look_at(source::source_of(Some(choice)));
    })
    .await
}

/// Keeps the settings. The source is chosen by `choose_source` alone: the page's copy of it may be old.
#[tauri::command]
pub(crate) async fn save_settings(kiosk: App<'_>, settings: Settings) -> Result<(), CommandError> {
    let kiosk = kiosk.inner().clone();
    blocking(move || {
        kiosk.settings.change(|kept| {
            let source = kept.source.take();
            *kept = Settings { source, ..settings };
        });
    })
    .await
}

/// Signs in with a one-time link.
#[tauri::command]
pub(crate) async fn sign_in(kiosk: App<'_>, link: String) -> Result<(), CommandError> {
    kiosk.sign_in(&link).await
}

/// Has a code for signing in sent to a number.
#[tauri::command]
pub(crate) async fn send_sms(
    kiosk: App<'_>,
    mobile: Secret,
    captcha_token: Option<Secret>,
    via: Option<Via>,
) -> Result<SmsSent, CommandError> {
    kiosk.send_sms(&number(&mobile)?, captcha_token, via).await
}

/// A captcha for the sending of a code to a number.
#[tauri::command]
pub(crate) async fn captcha(kiosk: App<'_>, mobile: Secret) -> Result<CaptchaChallenge, CommandError> {
    kiosk.captcha(&number(&mobile)?).await
}

/// Signs in with a code that was sent to a number.
#[tauri::command]
pub(crate) async fn sms_login(
    kiosk: App<'_>,
    mobile: Secret,
    code: Secret,
    request_id: String,
) -> Result<(), CommandError> {
    let code = SmsCode::from_typed(code.expose()).map_err(|why| bad_field("code", why))?;
    let request_id = RequestId::parse(&request_id).map_err(|why| bad_field("requestId", why))?;
    kiosk.sms_login(&number(&mobile)?, &code, &request_id).await
}

/// Ends the session.
#[tauri::command]
pub(crate) async fn sign_out(kiosk: App<'_>) -> Result<(), CommandError> {
    kiosk.sign_out().await;
    Ok(())
}

/// Opens a visitor's page of the demo in the system's browser.
#[tauri::command]
pub(crate) async fn open_visitor_page(kiosk: App<'_>, order_no: String) -> Result<(), CommandError> {
    let order_no = OrderNo::parse(&order_no).map_err(|why| bad_field("orderNo", why))?;
    let link = kiosk.visitor_link(&order_no).await?;
    // The link stands in the browser's command line for all users of this machine to see: it works once, only in the
    // demo, and only for a made-up booking.
    blocking(move || open::that_detached(link.expose()))
        .await?
        .inspect_err(|error| tracing::error!(kind = ?error.kind(), "no browser could be opened"))
        .map_err(|_| CommandError::Internal)
}

/// The picture that follows number `after`; see [`source::Eye::next_picture`].
#[tauri::command]
pub(crate) async fn next_preview(kiosk: App<'_>, after: u64) -> Result<Response, CommandError> {
    let eye = kiosk.eye.clone();
    blocking(move || eye.next_picture(after)).await.map(Response::new)
}

/// Work that may wait for a device or a disk, off the threads that everything else runs on.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, CommandError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a command ended by a fault of its own");
        CommandError::Internal
    })
}

fn number(mobile: &Secret) -> Result<Mobile, CommandError> {
    Mobile::parse(mobile.expose()).map_err(|why| bad_field("mobile", why))
}

fn bad_field(field: &str, why: InvalidNumber) -> CommandError {
    CommandError::BadField { field: field.to_owned(), empty: why == InvalidNumber::Empty }
}
