//! `doctor sms`: a real send by each channel for each scene, to see what no answer of an interface shows: whether its
//! template is approved, its variables have the right names, and the message comes.
//!
//! Each try is a row like any other send, so that the count of our sends and the provider's are the same; its code is
//! random and good for nothing, for it never reaches the code store. Breakers and alerts are as with any other send.

use super::cause::cause;
use super::channel::{Message, Outcome, Receipt, Recipient, Report, Via as Carried};
use super::number::{email, shown};
use super::store::{self, NewSendRow};
use super::trace::{asks, receipt_in_words};
use crate::app::App;
use crate::config::{ChannelConfig, ChannelKind};
use crate::db::transact;
use crate::text::{Lang, Text};
use anyhow::Context;
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::time::Duration;
use wire::accounts::Via;
use wire::{Mobile, SmsCode, TenantId};

/// So long receipts are waited for, and so long between two questions.
const RECEIPTS: Duration = Duration::from_secs(60);
const RECEIPTS_AGAIN: Duration = Duration::from_secs(2);

/// What providers let one number have in an hour by default.
const USUAL_HOURLY: usize = 5;

/// What is to be tried, and how.
#[derive(Debug)]
pub struct Order<'a> {
    /// Whose rows and alerts.
    pub tenant: TenantId,
    /// Where messages and calls go.
    pub mobile: Option<&'a Mobile>,
    /// Where mails go; a mailbox as [`is_mailbox`] knows it.
    pub mail: Option<&'a str>,
    /// One scene alone.
    pub scene: Option<&'a str>,
    /// Between two sends by one channel to the number.
    pub pause: Duration,
    /// In Chinese rather than in English.
    pub chinese: bool,
}

/// Whether this is a mailbox.
pub fn is_mailbox(text: &str) -> bool {
    email(text).is_some()
}

/// What is said of an address that is none.
pub fn no_mailbox(chinese: bool) -> &'static str {
    Text::EmailIllFormed.say(Lang::of(chinese))
}

/// One send that will be made.
#[derive(Debug)]
struct Try {
    channel: String,
    scene: String,
    to: Recipient,
    via: Via,
}

/// Every send that will be made.
#[derive(Debug)]
pub struct Trial {
    app: App,
    tenant: TenantId,
    tries: Vec<Try>,
    pause: Duration,
    lang: Lang,
    /// What will be done, line by line.
    pub plan: Vec<String>,
}

/// The questions and ends of a trial in words.
#[derive(Debug)]
pub struct Words {
    /// Whether to send.
    pub ask: &'static str,
    /// The number gets no codes.
    pub prefix: &'static str,
    /// There is nobody to ask.
    pub no_terminal: &'static str,
    /// The answer was no.
    pub nothing_sent: &'static str,
    /// Something has failed.
    pub fault: &'static str,
}

/// These words.
pub fn words(chinese: bool) -> Words {
    let lang = Lang::of(chinese);
    Words {
        ask: Text::TrialAsk.say(lang),
        prefix: Text::TrialPrefix.say(lang),
        no_terminal: Text::TrialNoTerminal.say(lang),
        nothing_sent: Text::TrialNothingSent.say(lang),
        fault: Text::TrialFault.say(lang),
    }
}

impl Trial {
    /// What will be sent: for each scene by each channel, so that the pauses of one channel are used by the others.
    ///
    /// # Errors
    /// Where there is nothing to try.
    pub fn plan(app: &App, order: &Order<'_>) -> anyhow::Result<Self> {
        let lang = Lang::of(order.chinese);
        let scenes: Vec<&str> =
            app.config.sms.scene_names().filter(|name| order.scene.is_none_or(|scene| scene == *name)).collect();
        let (mut tries, mut lines) = (Vec::new(), Vec::new());
        let channels: Vec<&ChannelConfig> =
            app.channels.names().filter_map(|channel| app.channels.config(channel)).collect();
        for config in &channels {
            let name = &config.name;
            if recipient(order, config).is_none() {
                let why = if config.kind == ChannelKind::Smtp { Text::TrialNeedsMail } else { Text::TrialNeedsMobile };
                lines.push(Text::TrialLeftOut.with(lang, &[("channel", name), ("why", &why.say(lang))]));
                continue;
            }
            let mut told = scenes.join(", ");
            if config.voice {
                told = format!("{told} ({})", Text::TrialVoice.say(lang));
            }
            lines.push(Text::TrialChannel.with(lang, &[("channel", name), ("scenes", &told)]));
        }
        for scene in &scenes {
            for config in &channels {
                let Some(to) = recipient(order, config) else { continue };
                let via = if config.voice { Via::Voice } else { Via::Sms };
                tries.push(Try { channel: config.name.clone(), scene: (*scene).to_owned(), to, via });
            }
        }
        anyhow::ensure!(!tries.is_empty(), "{}", with_lines(Text::TrialNoChannel.say(lang), &lines));
        let to = [order.mobile.map(ToString::to_string), order.mail.and_then(email).map(|to| format!("{to:?}"))];
        let to = to.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let (count, pause) = (tries.len(), order.pause.as_secs());
        lines.insert(0, Text::TrialPlan.with(lang, &[("to", &to), ("count", &count), ("pause", &pause)]));
        if order.mobile.is_some() && scenes.len() > USUAL_HOURLY {
            lines.push(Text::TrialTooMany.with(lang, &[("count", &scenes.len())]));
        }
        Ok(Self { app: app.clone(), tenant: order.tenant, tries, pause: order.pause, lang, plan: lines })
    }

    /// Sends, says what came of each, waits for receipts and says those; `true` where all were taken and none is known not
    /// to have arrived.
    ///
    /// # Errors
    /// Where a send cannot be written down, and so is not made, or `say` fails.
    pub async fn run(self, mut say: impl FnMut(String) -> anyhow::Result<()>) -> anyhow::Result<bool> {
        let mut last: HashMap<&str, Duration> = HashMap::new();
        let mut full = HashSet::new();
        let (mut taken, mut failed) = (Vec::new(), 0);
        for one in &self.tries {
            let (channel, scene): (&dyn Display, &dyn Display) = (&one.channel, &one.scene);
            if full.contains(one.channel.as_str()) {
                say(Text::TrialSkipped.with(self.lang, &[("channel", channel), ("scene", scene)]))?;
                failed += 1;
                continue;
            }
            if matches!(one.to, Recipient::Mobile(_))
                && let Some(at) = last.get(one.channel.as_str())
            {
                tokio::time::sleep((*at + self.pause).saturating_sub(self.app.clock.monotonic())).await;
            }
            let (id, at, report) = self.send(one).await?;
            last.insert(&one.channel, self.app.clock.monotonic());
            say(self.told(one, &id, &report))?;
            match report.outcome {
                Outcome::Sent => taken.push((one, id, at, report.provider_id)),
                outcome => {
                    failed += 1;
                    if outcome == Outcome::NumberLimit {
                        full.insert(one.channel.as_str());
                    }
                }
            }
        }
        let count = taken.len();
        let arrived = self.receipts(taken, &mut say).await?;
        say(Text::TrialDone.with(self.lang, &[("taken", &count), ("failed", &failed)]))?;
        Ok(failed == 0 && arrived)
    }

    /// One send with its row.
    async fn send(&self, one: &Try) -> anyhow::Result<(String, i64, Report)> {
        let app = &self.app;
        let id = uuid::Uuid::new_v4().simple().to_string();
        let (at, digest, shown) = (app.clock.now_ms(), app.recipient_digest(self.tenant, &one.to), shown(&one.to));
        let row = NewSendRow {
            tenant: self.tenant,
            id: &id,
            scene: &one.scene,
            via: one.via,
            shown: &shown,
            digest: &digest,
            address: None,
            code_space: &app.code_space(),
            at,
        };
        transact(|| store::insert_send(&app.db, &row)).await.context("the send cannot be written down")?;
        let code = SmsCode::from_number(app.random.number(0..=SmsCode::MAX)).context("no code could be made")?;
        let rules = app.rules(self.tenant).await.context("the database cannot be read")?;
        let ttl = rules.sms.scene(&one.scene).map(|rule| rule.ttl).unwrap_or_default();
        let message = Message {
            id: id.clone(),
            tenant: self.tenant,
            scene: one.scene.clone(),
            to: one.to.clone(),
            code,
            ttl,
            via: if one.via == Via::Voice { Carried::Voice } else { Carried::Sms },
        };
        let report = app.channels.send_by(&one.channel, &message).await?;
        let finished = transact(|| store::finish_send(&app.db, self.tenant, &id, &report)).await;
        finished.context("how a send ended cannot be written down")?;
        Ok((id, at, report))
    }

    fn told(&self, one: &Try, send: &str, report: &Report) -> String {
        let lang = self.lang;
        let config = self.app.channels.config(&one.channel);
        let template = match config.map(|config| (config.kind, config.template(&one.scene))) {
            // The text of a mail is long.
            Some((ChannelKind::Smtp, _)) => Text::TrialMailTemplate.say(lang),
            Some((_, Some(template))) => template,
            _ => Text::TrialOwnTemplate.say(lang),
        };
        if report.outcome == Outcome::Sent {
            let id = report.provider_id.as_ref().map(|id| Text::TraceProviderId.with(lang, &[("id", id)]));
            let id = id.unwrap_or_default();
            let values: [(&str, &dyn Display); 5] = [
                ("channel", &one.channel),
                ("scene", &one.scene),
                ("template", &template),
                ("id", &id),
                ("send", &send),
            ];
            return Text::TrialTaken.with(lang, &values);
        }
        // The channel is named already, and its name says nothing of the cause.
        let reason = report.reason.strip_prefix(&format!("{}: ", one.channel)).unwrap_or(&report.reason);
        let cause = cause(reason);
        let class = match report.outcome {
            Outcome::NumberLimit => Some('C'),
            Outcome::Refused => Some('D'),
            Outcome::Unknown => Some('E'),
            _ => cause.class,
        };
        let class = class.map(|class| Text::TrialClass.with(lang, &[("class", &class)])).unwrap_or_default();
        let why = cause.text.say(lang);
        let values: [(&str, &dyn Display); 7] = [
            ("channel", &one.channel),
            ("scene", &one.scene),
            ("template", &template),
            ("class", &class),
            ("why", &why),
            ("reason", &reason),
            ("send", &send),
        ];
        Text::TrialFailed.with(lang, &values)
    }

    /// Asks for the receipts of what was taken until all are there, a minute at most; `false` where one says that a
    /// message did not arrive.
    async fn receipts(
        &self,
        taken: Vec<(&Try, String, i64, Option<String>)>,
        say: &mut impl FnMut(String) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let app = &self.app;
        let mut open: Vec<_> = taken
            .iter()
            .filter(|(one, _, _, provider_id)| asks(app, &one.channel, provider_id.as_deref()).is_some())
            .collect();
        if open.is_empty() {
            return Ok(true);
        }
        say(Text::TrialReceipts.with(self.lang, &[("seconds", &RECEIPTS.as_secs())]))?;
        let until = app.clock.monotonic() + RECEIPTS;
        let mut arrived = true;
        loop {
            let late = app.clock.monotonic() >= until;
            let mut waiting = Vec::new();
            for taken in open {
                let (one, id, at, provider_id) = taken;
                let Recipient::Mobile(mobile) = &one.to else { continue };
                let provider_id = asks(app, &one.channel, provider_id.as_deref()).unwrap_or_default();
                let told = match app.channels.receipt(&one.channel, mobile, provider_id, id, *at).await {
                    Ok(Receipt::Waiting) if !late => {
                        waiting.push(taken);
                        continue;
                    }
                    Ok(receipt) => {
                        let now = app.clock.now_ms();
                        transact(|| store::settle_receipt(&app.db, self.tenant, id, &receipt, now)).await?;
                        arrived &= !matches!(receipt, Receipt::Failed(_));
                        receipt_in_words(self.lang, &receipt)
                    }
                    // A provider that throttles is asked again.
                    Err(_) if !late => {
                        waiting.push(taken);
                        continue;
                    }
                    Err(error) => Text::ReceiptAway.with(self.lang, &[("why", &error)]),
                };
                let values: [(&str, &dyn Display); 3] =
                    [("channel", &one.channel), ("scene", &one.scene), ("receipt", &told)];
                say(Text::TrialReceipt.with(self.lang, &values))?;
            }
            if waiting.is_empty() {
                return Ok(arrived);
            }
            open = waiting;
            tokio::time::sleep(RECEIPTS_AGAIN).await;
        }
    }
}

/// Where a channel's message goes, if such an address was given.
fn recipient(order: &Order<'_>, config: &ChannelConfig) -> Option<Recipient> {
    match config.kind {
        ChannelKind::Smtp => order.mail.and_then(email),
        _ => order.mobile.cloned().map(Recipient::Mobile),
    }
}

fn with_lines(first: &str, lines: &[String]) -> String {
    [first].into_iter().chain(lines.iter().map(String::as_str)).collect::<Vec<_>>().join("\n")
}
