//! `sms trace` and `doctor sms`.

use super::{Common, WrongUsage, load_quietly, open_with, say, set_up, speaks_chinese};
use anyhow::{Context, bail, ensure};
use guidepost_server::Config;
use guidepost_server::sms_trace::{Question, no_mobile, no_scene, trace};
use guidepost_server::sms_trial::{Order, Trial, is_mailbox, no_mailbox, words};
use std::io::{BufRead, IsTerminal, Read, Write};
use std::time::Duration;
use wire::Mobile;

/// Says what became of a number's codes today; a failure where something is wrong.
pub(super) async fn trace_number(
    config: Config,
    named: Option<i64>,
    mobile: &str,
    scene: Option<&str>,
) -> anyhow::Result<()> {
    let chinese = speaks_chinese();
    let mobile = number(mobile, chinese)?;
    // TLS towards the stores needs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let codes_elsewhere = config.code_store.url.expose() == "memory:";
    let app = open_with(config).await?;
    let tenant = set_up::tenant(&app, named).await?;
    if let Some(wrong) = scene.and_then(|scene| no_scene(&app, scene, chinese)) {
        bail!(WrongUsage(wrong));
    }
    let found = trace(&app, &Question { tenant, mobile: &mobile, scene, codes_elsewhere, chinese }).await?;
    for line in found.lines {
        say(line)?;
    }
    match found.fault {
        Some(fault) => bail!(fault),
        None => Ok(()),
    }
}

/// To whom `doctor sms` sends, and how.
#[derive(Debug)]
pub(super) struct Sending<'a> {
    pub(super) mobile: Option<&'a str>,
    pub(super) mail: Option<&'a str>,
    pub(super) scene: Option<&'a str>,
    /// Seconds between two sends by one channel.
    pub(super) pause: u32,
    /// Without asking.
    pub(super) yes: bool,
}

/// Tries each channel and scene by a real send; a failure where one cannot be used.
pub(super) async fn try_channels(common: &Common, sending: &Sending<'_>) -> anyhow::Result<()> {
    let chinese = speaks_chinese();
    let words = words(chinese);
    let mobile = sending.mobile.map(|mobile| number(mobile, chinese)).transpose()?;
    if !sending.mail.is_none_or(is_mailbox) {
        bail!(WrongUsage(no_mailbox(chinese).to_owned()));
    }
    let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && sending.mobile != Some("-");
    if !sending.yes && !asks {
        bail!(WrongUsage(words.no_terminal.to_owned()));
    }
    // What each channel says is told once, below.
    let config = load_quietly(common)?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let app = open_with(config).await?;
    let tenant = set_up::tenant(&app, common.tenant).await?;
    if let Some(wrong) = sending.scene.and_then(|scene| no_scene(&app, scene, chinese)) {
        bail!(WrongUsage(wrong));
    }
    // It would try what nobody ever gets.
    if !mobile.as_ref().is_none_or(|mobile| app.config.sms.allows(mobile)) {
        bail!(WrongUsage(words.prefix.to_owned()));
    }
    let order = Order {
        tenant,
        mobile: mobile.as_ref(),
        mail: sending.mail,
        scene: sending.scene,
        pause: Duration::from_secs(sending.pause.into()),
        chinese,
    };
    let trial = Trial::plan(&app, &order)?;
    for line in &trial.plan {
        say(line)?;
    }
    if !sending.yes && !confirmed(words.ask)? {
        return say(words.nothing_sent);
    }
    let all = trial.run(say).await?;
    ensure!(all, words.fault);
    Ok(())
}

/// A number from the command line or, for `-`, the first line of standard input, so that no shell keeps it.
fn number(text: &str, chinese: bool) -> anyhow::Result<Mobile> {
    let mut line = String::new();
    let text = if text == "-" {
        let mut input = std::io::BufReader::new(std::io::stdin().take(256));
        input.read_line(&mut line).context("standard input cannot be read")?;
        line.as_str()
    } else {
        text
    };
    Mobile::parse(text).map_err(|_| WrongUsage(no_mobile(chinese).to_owned()).into())
}

fn confirmed(ask: &str) -> anyhow::Result<bool> {
    let mut out = std::io::stderr();
    write!(out, "{ask}")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::BufReader::new(std::io::stdin().take(256)).read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes" | "是"))
}
