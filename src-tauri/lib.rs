//! The kiosk: a window, a camera and a way to the server.
//!
//! A shell without rules of business. The scanner finds codes, the server decides, the page shows; this crate carries
//! what they say from the one to the other, see [`redeem`].
#![forbid(unsafe_code)]

mod bundled_server;
mod commands;
mod host_types;
mod keyring;
mod kiosk;
mod link;
mod redeem;
mod screen;
mod server_client;
mod session;
mod settings;
mod source;
#[cfg(test)]
mod testing;

use anyhow::Context;
use bundled_server::BundledServer;
use clap::Parser;
use keyring::Places;
use kiosk::{Backing, Kiosk};
use settings::SettingsStore;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tauri::path::PathResolver;
use tauri::{Manager, WebviewWindowBuilder, Wry};
use tempfile::TempDir;
use wire::OrderNo;

/// Where the server is when nobody says otherwise: on this machine.
const USUAL_SERVER: &str = "http://127.0.0.1:8080";

/// The kiosk of a venue's front desk: reads visitors' codes and shows whether the group may go in.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Run the server inside the app, with made-up bookings, and sign in as its guide.
    #[arg(long, conflicts_with = "server")]
    demo: bool,
    /// The folder for settings and for the demo's database (which must be empty).
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The server's address; otherwise what the settings name, or this machine's port 8080.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Read the pictures of this folder (or this one) in place of a camera, again and again.
    #[arg(long, value_name = "PATH")]
    pictures: Option<PathBuf>,
    /// So many pictures a second.
    #[arg(long, value_name = "N", requires = "pictures", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=60))]
    fps: u8,
    /// A window in place of the whole screen; the demo has one anyway.
    #[arg(long)]
    windowed: bool,
}

/// Runs the app until its window is closed.
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        // A log that cannot be written must not end anything.
        .log_internal_errors(false)
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    // One provider for all of TLS; the first one that is installed stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match run_app(arguments) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_app(arguments: Arguments) -> anyhow::Result<ExitCode> {
    #[cfg(target_os = "linux")]
    anyhow::ensure!(
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())),
        "there is no display to open a window on: start this in a graphical session, or under `xvfb-run`"
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // The app's own runtime: the bundled server is stopped in it after the window has gone.
    tauri::async_runtime::set(runtime.handle().clone());
    let app = tauri::Builder::default()
        .invoke_handler(tauri::generate_handler![
            commands::info,
            commands::subscribe,
            commands::tasks,
            commands::task_orders,
            commands::redeem_by_hand,
            commands::cameras,
            commands::choose_source,
            commands::save_settings,
            commands::sign_in,
            commands::send_sms,
            commands::captcha,
            commands::sms_login,
            commands::sign_out,
            commands::open_visitor_page,
            commands::next_preview,
        ])
        .build(tauri::generate_context!())
        .context("no window can be opened")?;

    let kiosk = Arc::new(runtime.block_on(open_kiosk(&arguments, app.path()))?);
    let source = match arguments.pictures {
        Some(path) => source::pictures(path, f32::from(arguments.fps)),
        None => source::source_of(kiosk.settings.get().source),
    };
    app.manage(kiosk.clone());
    let window = app.config().app.windows.first().context("tauri.conf.json has no window")?;
    let mut window =
        WebviewWindowBuilder::from_config(app.handle(), window)?.fullscreen(!(arguments.demo || arguments.windowed));
    let borrowed = folder_for_homeless(app.path())?;
    if let Some(folder) = &borrowed {
        window = window.data_directory(folder.path().to_owned());
    }
    window.build().context("the window cannot be opened")?;
    // A keyring that hangs must not hold up the window, and the page waits for what it says.
    let resuming = kiosk.clone();
    runtime.spawn(async move { resuming.resume().await });
    // Nor must a device.
    let looking = kiosk.clone();
    std::thread::Builder::new().name("source".into()).spawn(move || looking.eye.look_at(source))?;
    runtime.spawn(end_on_signal(app.handle().clone()));

    let code = app.run_return(|_, _| {});
    runtime.block_on(kiosk.close());
    Ok(u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Opens what stands behind the window: settings, server, session.
async fn open_kiosk(arguments: &Arguments, path: &PathResolver<Wry>) -> anyhow::Result<Kiosk> {
    let folder = match &arguments.data {
        Some(folder) => Some(folder.clone()),
        // A demo leaves nothing behind, and finds nothing that a real kiosk of this user has chosen.
        None if arguments.demo => None,
        // A user without a home has no place for settings.
        None => path.app_config_dir().inspect_err(|error| tracing::warn!(%error, "settings are not kept")).ok(),
    };
    let settings = SettingsStore::open(folder.as_deref());
    if !arguments.demo {
        let address = arguments.server.clone().or_else(|| settings.server());
        let backing = Backing::Server(Places::of_this_system());
        return Kiosk::start(address.as_deref().unwrap_or(USUAL_SERVER), settings, backing, now);
    }
    let server = BundledServer::start(arguments.data.as_deref()).await?;
    let address = format!("http://{}", server.address());
    let guide_link = server.guide_link().context("the demo has no guide")?.clone();
    let text = where_to_look(&address, &server);
    let kiosk = Kiosk::start(&address, settings, Backing::Demo(Box::new(server)), now)?;
    kiosk.sign_in(guide_link.expose()).await.context("the demo's guide cannot sign in")?;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("standard output")?;
    Ok(kiosk)
}

/// The web view insists on a folder. A kiosk's user may have no home to put one in; then it gets one that is gone with
/// the app: the page keeps nothing in it.
fn folder_for_homeless(path: &PathResolver<Wry>) -> anyhow::Result<Option<TempDir>> {
    let usual = path.app_local_data_dir().map_err(anyhow::Error::from);
    match usual.and_then(|folder| Ok(std::fs::create_dir_all(folder)?)) {
        Ok(()) => Ok(None),
        Err(error) => {
            tracing::warn!(%error, "no home for the web view's files; they are gone with the app");
            let folder =
                tempfile::Builder::new().prefix("guidepost-").tempdir().context("no folder for the web view")?;
            Ok(Some(folder))
        }
    }
}

/// What the demo prints: addresses are for the person who started it, and the links in them work once.
fn where_to_look(address: &str, server: &BundledServer) -> String {
    let mut text = format!("listening on {address}\n");
    for visitor in server.visitor_links() {
        let order_no = visitor.order_no.as_ref().map_or("-", OrderNo::as_str);
        text += &format!("visitor page of {}, order {order_no}: {}\n", visitor.name, visitor.url.expose());
    }
    for guide in server.other_guide_links() {
        text +=
            &format!("sign-in link of guide {}, to be pasted after signing out: {}\n", guide.name, guide.url.expose());
    }
    text
}

/// Without this a signal would leave the demo's folder behind.
async fn end_on_signal(app: tauri::AppHandle) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
        else {
            return;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        app.exit(0);
    }
}

/// The machine's clock: for the difference to the server's, which alone decides.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the shell reads the clock; it is passed on from here"
)]
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
