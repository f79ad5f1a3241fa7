//! The commands: serve, admin, api-key, tenant, import, migrate, backup, restore, doctor, sms, openapi. Logs go to standard
//! error.

mod backup;
mod doctor;
mod import;
mod serve;
mod set_up;
mod sms;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use guidepost_server::Config;
use guidepost_server::app::{App, AppState};
use guidepost_server::clock::{SystemClock, SystemRandom};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tracing_subscriber::EnvFilter;

/// Guidepost's server.
#[derive(Debug, Parser)]
#[command(name = "guidepost-server", version, about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Common {
    /// The settings file (TOML); each setting also is an environment variable GUIDEPOST_…
    #[arg(long, global = true)]
    config: Option<PathBuf>,
    /// The tenant's number, where there are several
    #[arg(long, global = true)]
    tenant: Option<i64>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve kiosks, visitors and machines
    Serve {
        #[command(flatten)]
        common: Common,
        /// Make guides, today's tasks and paid orders in an empty database, and print where to look
        #[arg(long)]
        demo: bool,
    },
    /// Admins
    Admin {
        #[command(subcommand)]
        action: AdminAction,
    },
    /// Keys for machines
    ApiKey {
        #[command(subcommand)]
        action: ApiKeyAction,
    },
    /// Tenants
    Tenant {
        #[command(subcommand)]
        action: TenantAction,
    },
    /// Bring files in
    Import {
        #[command(subcommand)]
        action: ImportAction,
    },
    /// Apply pending migrations and end
    Migrate {
        #[command(flatten)]
        common: Common,
    },
    /// Write a checked copy of the SQLite database to FILE, while the server serves
    Backup {
        #[command(flatten)]
        common: Common,
        /// Where to write it
        file: PathBuf,
        /// Replace FILE if it exists
        #[arg(long)]
        overwrite: bool,
    },
    /// Put a backup in the SQLite database's place; the present one is kept under a dated name
    Restore {
        #[command(flatten)]
        common: Common,
        /// The backup
        file: PathBuf,
    },
    /// Look at clock, port, database, code store, disk and files, and say what is wrong and what to do
    Doctor {
        #[command(flatten)]
        common: Common,
        /// A CA that is trusted for `public_url` beside the public ones (PEM)
        #[arg(long, value_name = "FILE")]
        ca: Option<PathBuf>,
        #[command(subcommand)]
        what: Option<DoctorAction>,
    },
    /// SMS codes
    Sms {
        #[command(subcommand)]
        action: SmsAction,
    },
    /// Print the description of the HTTP interface (OpenAPI)
    Openapi,
}

#[derive(Debug, Subcommand)]
enum AdminAction {
    /// Make an admin; without --password-stdin a password is made and printed once
    Add {
        #[command(flatten)]
        common: Common,
        /// The user name
        #[arg(long)]
        username: String,
        /// The mobile number
        #[arg(long)]
        mobile: Option<String>,
        /// Read the password from standard input
        #[arg(long)]
        password_stdin: bool,
    },
    /// Give an admin another password and end their sessions; without --password-stdin one is made and printed once
    ResetPassword {
        #[command(flatten)]
        common: Common,
        /// The user name
        #[arg(long)]
        username: String,
        /// Read the password from standard input
        #[arg(long)]
        password_stdin: bool,
    },
}

#[derive(Debug, Subcommand)]
enum ApiKeyAction {
    /// Make a key and print it, once
    Add {
        #[command(flatten)]
        common: Common,
        /// What the key is for
        #[arg(long)]
        name: String,
    },
}

#[derive(Debug, Subcommand)]
enum ImportAction {
    /// Import orders from a CSV or XLSX file, all of them or none
    Orders {
        #[command(flatten)]
        common: Common,
        /// The file
        file: PathBuf,
        /// Only say what it would do, and what is wrong with it
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Subcommand)]
enum SmsAction {
    /// Say what became of a number's codes today: requests, code, channel's answer, receipt, and what to do next
    Trace {
        #[command(flatten)]
        common: Common,
        /// The number, or - to read it from standard input, so that the shell's history does not keep it
        #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
        mobile: String,
        /// One scene alone (login, register, reset_password, change_mobile, confirm, or one of the settings)
        #[arg(long)]
        scene: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
enum DoctorAction {
    /// Try each SMS channel with each scene's template by a real send, and say what came of it
    #[command(group = clap::ArgGroup::new("to").required(true).multiple(true).args(["send_to", "send_to_mail"]))]
    Sms {
        /// The phone to which messages and calls go, or - to read the number from standard input
        #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
        send_to: Option<String>,
        /// The mailbox to which mails go
        #[arg(long, value_name = "ADDRESS")]
        send_to_mail: Option<String>,
        /// One scene alone
        #[arg(long)]
        scene: Option<String>,
        /// Seconds between two messages by the same channel: providers take one a minute for a number as a rule
        #[arg(long, value_name = "SECONDS", default_value_t = 60)]
        pause: u32,
        /// Send without asking
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
enum TenantAction {
    /// Make a tenant and print its number
    Add {
        #[command(flatten)]
        common: Common,
        /// Its name
        #[arg(long)]
        name: String,
    },
}

/// The command line asks for something that cannot be.
#[derive(Debug)]
struct WrongUsage(String);

impl std::fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

/// What a program that failed so ends with: 2 for wrong usage, as clap has it, and 1 for everything else.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.is::<WrongUsage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// Says what went wrong, with its causes, for a person at a terminal.
pub(crate) fn complain(error: &anyhow::Error) {
    let _ = writeln!(std::io::stderr(), "guidepost-server: {error:#}");
}

/// Writes a line to standard output.
fn say(line: impl std::fmt::Display) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Runs a command to its end.
pub(crate) fn run(cli: Cli) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match cli.command {
            Command::Serve { common, demo } => serve::serve(load(&common)?, demo).await,
            Command::Admin { action: AdminAction::Add { common, username, mobile, password_stdin } } => {
                set_up::add_admin(&open(&common).await?, common.tenant, &username, mobile.as_deref(), password_stdin)
                    .await
            }
            Command::Admin { action: AdminAction::ResetPassword { common, username, password_stdin } } => {
                set_up::reset_admin_password(&open(&common).await?, common.tenant, &username, password_stdin).await
            }
            Command::ApiKey { action: ApiKeyAction::Add { common, name } } => {
                set_up::add_api_key(&open(&common).await?, common.tenant, &name).await
            }
            Command::Tenant { action: TenantAction::Add { common, name } } => {
                set_up::add_tenant(&open(&common).await?, &name).await
            }
            Command::Import { action: ImportAction::Orders { common, file, dry_run } } => {
                import::orders(load(&common)?, common.tenant, &file, dry_run).await
            }
            Command::Migrate { common } => {
                let app = open(&common).await?;
                app.db.migrate().await
            }
            Command::Backup { common, file, overwrite } => backup::backup(load(&common)?, &file, overwrite).await,
            Command::Restore { common, file } => backup::restore(load(&common)?, &file).await,
            Command::Doctor { common, ca, what: None } => doctor::doctor(&common, ca.as_deref()).await,
            Command::Doctor {
                common,
                what: Some(DoctorAction::Sms { send_to, send_to_mail, scene, pause, yes }),
                ..
            } => {
                let (mobile, mail, scene) = (send_to.as_deref(), send_to_mail.as_deref(), scene.as_deref());
                sms::try_channels(&common, &sms::Sending { mobile, mail, scene, pause, yes }).await
            }
            Command::Sms { action: SmsAction::Trace { common, mobile, scene } } => {
                sms::trace_number(load(&common)?, common.tenant, &mobile, scene.as_deref()).await
            }
            Command::Openapi => say(guidepost_server::openapi()),
        }
    })
}

/// Reads the settings and starts logging by them.
fn load(common: &Common) -> anyhow::Result<Config> {
    let config = Config::load(common.config.as_deref(), std::env::vars())?;
    // Libraries are held at `warn`: what they say below that is not ours to vouch for.
    start_log(&format!("warn,guidepost_server={},wire={}", config.log, config.log))?;
    Ok(config)
}

/// Reads the settings for a command that says by itself all that there is to say.
fn load_quietly(common: &Common) -> anyhow::Result<Config> {
    start_log("off")?;
    Ok(Config::load(common.config.as_deref(), std::env::vars())?)
}

/// The language of what is said at a terminal, by the usual variables, the first of them that is set.
fn speaks_chinese() -> bool {
    let set = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    set.into_iter().find(|value| !value.is_empty()).is_some_and(|value| value.starts_with("zh"))
}

fn start_log(filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter).context("setting `log`")?;
    let _ = tracing_subscriber::fmt()
        // A log that cannot be written must not end anything.
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
    Ok(())
}

/// Opens the database for a command that does not serve.
async fn open(common: &Common) -> anyhow::Result<App> {
    open_with(load(common)?).await
}

async fn open_with(config: Config) -> anyhow::Result<App> {
    AppState::open(config, Arc::new(SystemClock::new()), Arc::new(SystemRandom)).await
}
