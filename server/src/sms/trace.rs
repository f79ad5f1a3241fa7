//! `sms trace`: what became of one number's codes today, in the order in which one looks for a message that did not come:
//! did the request arrive, is there a code, what did the channel say, what does the receipt say, what does the phone do.
//!
//! It looks from beside a running server and changes nothing but to keep a receipt that it has asked for. No code is ever
//! read, and of the number its end alone is said.

use super::cause::{cause, not_delivered};
use super::channel::{Receipt, Recipient};
use super::store::{self, SendRow};
use crate::app::App;
use crate::codes::CodesAway;
use crate::codes::sms::SceneState;
use crate::db::transact;
use crate::settings::Rules;
use crate::text::{Lang, Text};
use anyhow::Context;
use jiff::Timestamp;
use std::fmt::Display;
use std::time::Duration;
use wire::{Mobile, TenantId};

/// So many receipts of a day are asked for, the newest ones.
const RECEIPTS: usize = 20;

const AWAY: &str = "the database cannot be read";

/// Whom and what it is about.
#[derive(Debug)]
pub struct Question<'a> {
    /// Whose tenant.
    pub tenant: TenantId,
    /// The number.
    pub mobile: &'a Mobile,
    /// One scene alone.
    pub scene: Option<&'a str>,
    /// The codes are in the memory of another process.
    pub codes_elsewhere: bool,
    /// In Chinese rather than in English.
    pub chinese: bool,
}

/// What was found.
#[derive(Debug)]
pub struct Trace {
    /// Line by line, for people.
    pub lines: Vec<String>,
    /// What is wrong, in one line, where something is.
    pub fault: Option<String>,
}

/// What is said of a number that is none, or none that this server takes.
pub fn no_mobile(chinese: bool) -> &'static str {
    Text::MobileInvalid.say(Lang::of(chinese))
}

/// Why a scene cannot be asked for; `None` where there is such a scene.
pub fn no_scene(app: &App, scene: &str, chinese: bool) -> Option<String> {
    let mut known = app.config.sms.scene_names();
    if known.any(|name| name == scene) {
        return None;
    }
    let known = app.config.sms.scene_names().collect::<Vec<_>>().join(", ");
    Some(Text::UnknownScene.with(Lang::of(chinese), &[("scene", &scene), ("known", &known)]))
}

/// Looks at everything that is known of a number's codes of today.
///
/// # Errors
/// Where the database cannot be read. That the code store or a provider is away is part of what is found.
pub async fn trace(app: &App, question: &Question<'_>) -> anyhow::Result<Trace> {
    let to = Recipient::Mobile(question.mobile.clone());
    let digest = app.recipient_digest(question.tenant, &to);
    let now = Timestamp::from_millisecond(app.clock.now_ms())?.to_zoned_datetime(app.zone.clone());
    let midnight = now.start_of_day()?.timestamp().as_millisecond();
    let rules = app.rules(question.tenant).await.context(AWAY)?;
    let mut sends = store::sends_to(&app.db, question.tenant, &digest, midnight).await.context(AWAY)?;
    sends.retain(|send| question.scene.is_none_or(|scene| send.scene == scene));

    let lang = Lang::of(question.chinese);
    let mut told = Told { app, lang, lines: Vec::new() };
    let day = now.strftime("%Y-%m-%d");
    let (tenant, zone) = (question.tenant, &app.config.timezone);
    told.line(Text::TraceOf, &[("to", question.mobile), ("tenant", &tenant), ("day", &day), ("zone", zone)]);
    told.requests(&sends);
    let codes = told.codes(question, &sends, &digest, &rules).await;
    told.answers(&sends);
    let receipts = told.receipts(question, &mut sends).await;
    told.line(Text::TracePhone, &[]);

    let (text, fault) = if app.config.sms.allows(question.mobile) {
        told.conclusion(&sends, &codes, &receipts)
    } else {
        (Text::EndPrefix.say(lang).to_owned(), false)
    };
    told.line(Text::TraceEnd, &[("text", &text)]);
    let fault = fault.then(|| Text::TraceFault.say(lang).to_owned());
    Ok(Trace { lines: told.lines, fault })
}

/// What the code store says.
enum Codes {
    Elsewhere,
    Away,
    Scenes(Vec<(String, SceneState)>),
}

struct Told<'a> {
    app: &'a App,
    lang: Lang,
    lines: Vec<String>,
}

impl Told<'_> {
    fn line(&mut self, text: Text, values: &[(&str, &dyn Display)]) {
        self.lines.push(text.with(self.lang, values));
    }

    fn below(&mut self, text: Text, values: &[(&str, &dyn Display)]) {
        self.lines.push(format!("   {}", text.with(self.lang, values)));
    }

    fn time(&self, at: i64) -> String {
        let at = Timestamp::from_millisecond(at).unwrap_or_default();
        at.to_zoned_datetime(self.app.zone.clone()).strftime("%H:%M:%S").to_string()
    }

    fn requests(&mut self, sends: &[SendRow]) {
        self.line(Text::TraceRequests, &[("count", &sends.len())]);
        if sends.is_empty() {
            self.below(Text::TraceNothing, &[]);
        }
        for send in sends {
            let outcome = match send.outcome.as_str() {
                "sent" => Text::OutcomeSent,
                "unknown" => Text::OutcomeUnknown,
                "not_taken" => Text::OutcomeNotTaken,
                "number_limit" => Text::OutcomeNumberLimit,
                "refused" => Text::OutcomeRefused,
                _ => Text::OutcomeSending,
            };
            let server = send.server.as_deref().unwrap_or("-");
            let from = send.address.as_deref().unwrap_or(Text::TraceNoAddress.say(self.lang));
            let (time, outcome) = (self.time(send.at), outcome.say(self.lang));
            let values: [(&str, &dyn Display); 7] = [
                ("time", &time),
                ("server", &server),
                ("scene", &send.scene),
                ("via", &send.via),
                ("from", &from),
                ("outcome", &outcome),
                ("id", &send.id),
            ];
            self.below(Text::TraceSend, &values);
        }
    }

    async fn codes(&mut self, question: &Question<'_>, sends: &[SendRow], digest: &str, rules: &Rules) -> Codes {
        self.line(Text::TraceCodes, &[]);
        if question.codes_elsewhere {
            self.below(Text::TraceElsewhere, &[]);
            return Codes::Elsewhere;
        }
        let ours = self.app.code_space();
        if let Some(other) = sends.iter().rfind(|send| send.code_space.as_ref().is_some_and(|space| *space != ours)) {
            let server = other.server.as_deref().unwrap_or("-");
            self.below(Text::TraceOtherSpace, &[("server", &server)]);
        }
        let (mut scenes, day) = (Vec::new(), self.app.sms_day());
        let names = self.app.config.sms.scene_names().filter(|name| question.scene.is_none_or(|scene| scene == *name));
        for name in names.map(str::to_owned).collect::<Vec<_>>() {
            let Some(rule) = rules.sms.scene(&name) else { continue };
            let state = match self.app.codes.sms_state(&self.app.sms_key(&name, digest), &day, rule).await {
                Ok(state) => state,
                Err(CodesAway(why)) => {
                    self.below(Text::TraceCodesAway, &[("why", &why)]);
                    return Codes::Away;
                }
            };
            if state != SceneState::default() {
                let lang = self.lang;
                let left = |text: Text, left: Duration| text.with(lang, &[("left", &span(lang, left))]);
                let code =
                    state.code.map_or(Text::TraceNoCode.say(lang).to_owned(), |life| left(Text::TraceAlive, life));
                let wait = state.cool_down.map_or(Text::TraceNoCoolDown.say(lang).to_owned(), |cool_down| {
                    left(Text::TraceCoolDown, cool_down)
                });
                let tries = match state.locked {
                    Some(lock) => left(Text::TraceLocked, lock),
                    None => Text::TraceTries.with(lang, &[("tries", &rule.max_fail.saturating_sub(state.wrong))]),
                };
                let values: [(&str, &dyn Display); 8] = [
                    ("scene", &name),
                    ("code", &code),
                    ("wait", &wait),
                    ("tries", &tries),
                    ("hour", &state.hour),
                    ("hourly", &rule.hourly),
                    ("day", &state.day),
                    ("daily", &rule.daily),
                ];
                self.below(Text::TraceScene, &values);
            }
            scenes.push((name, state));
        }
        match scenes.iter().filter(|(_, state)| *state == SceneState::default()).count() {
            0 => {}
            all if all == scenes.len() => self.below(Text::TraceUnknown, &[]),
            _ => self.below(Text::TraceUntouched, &[]),
        }
        Codes::Scenes(scenes)
    }

    fn answers(&mut self, sends: &[SendRow]) {
        self.line(Text::TraceAnswers, &[]);
        if sends.is_empty() {
            self.below(Text::TraceNone, &[]);
        }
        for send in sends {
            let time = self.time(send.at);
            for (channel, reason) in said(send) {
                let mut answer = self.answer(reason);
                if let Some(id) = &send.provider_id
                    && send.channel.as_deref() == Some(channel)
                {
                    answer += &Text::TraceProviderId.with(self.lang, &[("id", id)]);
                }
                self.below(Text::TraceAnswer, &[("time", &time), ("channel", &channel), ("answer", &answer)]);
            }
        }
    }

    /// A channel's answer in words, with its own beside them.
    fn answer(&self, reason: &str) -> String {
        let text = cause(reason).text.say(self.lang);
        if reason == "taken" { text.to_owned() } else { format!("{text} ({reason})") }
    }

    /// Those that are kept, and those that the provider can be asked for, which are kept then.
    async fn receipts(&mut self, question: &Question<'_>, sends: &mut [SendRow]) -> Vec<(String, Receipt)> {
        self.line(Text::TraceReceipts, &[]);
        let mut known = Vec::new();
        let went = sends.iter_mut().filter(|send| matches!(send.outcome.as_str(), "sent" | "unknown"));
        let mut newest: Vec<_> = went.rev().take(RECEIPTS).collect();
        newest.reverse();
        if newest.is_empty() {
            self.below(Text::TraceNone, &[]);
        }
        for send in newest {
            let Some(channel) = send.channel.clone() else { continue };
            let told = match (&send.receipt, asks(self.app, &channel, send.provider_id.as_deref())) {
                (Some(receipt), _) => receipt_in_words(self.lang, receipt),
                (None, None) => {
                    let gone = self.app.channels.config(&channel).is_none();
                    let text = if gone { Text::ReceiptGone } else { Text::ReceiptNever };
                    text.with(self.lang, &[("id", &send.id)])
                }
                (None, Some(provider_id)) => {
                    let asked =
                        self.app.channels.receipt(&channel, question.mobile, provider_id, &send.id, send.at).await;
                    match asked {
                        Ok(receipt) => {
                            let at = self.app.clock.now_ms();
                            let (db, tenant) = (&self.app.db, question.tenant);
                            let kept = transact(|| store::settle_receipt(db, tenant, &send.id, &receipt, at)).await;
                            if let Err(error) = kept {
                                tracing::warn!(send.id = send.id, %error, "a receipt could not be kept");
                            }
                            let told = receipt_in_words(self.lang, &receipt);
                            send.receipt = Some(receipt);
                            told
                        }
                        Err(why) => Text::ReceiptAway.with(self.lang, &[("why", &self.answer(&why.to_string()))]),
                    }
                }
            };
            if let Some(receipt) = &send.receipt {
                known.push((send.id.clone(), receipt.clone()));
            }
            let time = self.time(send.at);
            self.below(Text::TraceReceipt, &[("time", &time), ("channel", &channel), ("receipt", &told)]);
        }
        known
    }

    /// One line with what to do next, and whether something is wrong.
    fn conclusion(&self, sends: &[SendRow], codes: &Codes, receipts: &[(String, Receipt)]) -> (String, bool) {
        let lang = self.lang;
        if let Codes::Scenes(scenes) = codes
            && let Some((scene, lock)) = scenes.iter().find_map(|(name, state)| Some((name, state.locked?)))
        {
            return (Text::EndLocked.with(lang, &[("scene", scene), ("left", &span(lang, lock))]), false);
        }
        if matches!(codes, Codes::Away) {
            return (Text::EndAway.say(lang).to_owned(), true);
        }
        let Some(last) = sends.last() else {
            return (Text::EndNothing.say(lang).to_owned(), false);
        };
        let time = self.time(last.at);
        let channel = last.channel.as_deref().unwrap_or("-");
        if let Some(used) = last.used_at {
            return (Text::EndUsed.with(lang, &[("time", &time), ("used", &self.time(used))]), false);
        }
        let answers = || {
            let answers = said(last).map(|(channel, reason)| format!("{channel}: {}", self.answer(reason)));
            answers.collect::<Vec<_>>().join("; ")
        };
        let receipt = receipts.iter().find(|(id, _)| *id == last.id).map(|(_, receipt)| receipt);
        match (last.outcome.as_str(), receipt) {
            ("not_taken", _) => (Text::EndNotTaken.with(lang, &[("answer", &answers())]), true),
            ("number_limit", _) => (Text::EndNumberLimit.say(lang).to_owned(), true),
            ("refused", _) => (Text::EndRefused.with(lang, &[("answer", &answers())]), true),
            (_, Some(Receipt::Failed(code))) => {
                let why = not_delivered(code).say(lang);
                (Text::EndFailed.with(lang, &[("why", &why)]), true)
            }
            (_, Some(Receipt::Delivered)) => (Text::EndDelivered.with(lang, &[("time", &time)]), false),
            ("sent", _) => (Text::EndTaken.with(lang, &[("channel", &channel), ("time", &time)]), false),
            ("unknown", _) => (Text::EndUnknown.with(lang, &[("channel", &channel)]), false),
            _ => (Text::EndSending.with(lang, &[("time", &time)]), false),
        }
    }
}

/// What each channel said of a send, in order.
fn said(send: &SendRow) -> impl Iterator<Item = (&str, &str)> {
    let reason = send.reason.as_deref().unwrap_or_default();
    let parts = reason.split("; ").filter(|part| !part.is_empty());
    parts.map(|part| part.split_once(": ").unwrap_or(("-", part)))
}

/// What a channel is asked by for a receipt, where it keeps them: the provider's id, or nothing where it goes by ours.
pub(super) fn asks<'a>(app: &App, channel: &str, provider_id: Option<&'a str>) -> Option<&'a str> {
    app.channels.with_records().any(|name| name == channel).then(|| provider_id.unwrap_or_default())
}

pub(super) fn receipt_in_words(lang: Lang, receipt: &Receipt) -> String {
    match receipt {
        Receipt::Delivered => Text::ReceiptDelivered.say(lang).to_owned(),
        Receipt::Waiting => Text::ReceiptWaiting.say(lang).to_owned(),
        Receipt::Failed(code) => {
            Text::ReceiptFailed.with(lang, &[("why", &not_delivered(code).say(lang)), ("code", code)])
        }
    }
}

/// A span of time as people say it; never less than a second.
fn span(lang: Lang, span: Duration) -> String {
    let seconds = span.as_millis().div_ceil(1000);
    let (m, s) = (seconds / 60, seconds % 60);
    let text = if m == 0 { Text::Seconds } else { Text::MinutesSeconds };
    text.with(lang, &[("m", &m), ("s", &s)])
}
