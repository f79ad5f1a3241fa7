//! SMS codes in memory: one entry a number, so that every change of it is one step.

use super::super::sms::{NewSend, NumberState, SceneRule, SceneState, SendStep, SmsCodes, SmsKey, Try, TryStep, Undo};
use super::{AttemptId, CodesResult, MemoryCodes, Mortal, change};
use async_trait::async_trait;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use subtle::ConstantTimeEq;
use wire::SmsCode;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// All that the store knows of a number.
#[derive(Debug, Clone, Default)]
pub(super) struct NumberEntry {
    scenes: BTreeMap<String, SceneEntry>,
    sends: VecDeque<Duration>,
}

/// When each send was, and its id; the oldest first.
type Sends = VecDeque<(Duration, String)>;

#[derive(Debug, Clone, Default)]
struct SceneEntry {
    /// The code and the id of its send.
    code: Option<Mortal<(SmsCode, String)>>,
    cool_down: Option<Mortal<String>>,
    hour: Sends,
    days: BTreeMap<String, Mortal<u32>>,
    wrong: Vec<AttemptId>,
    wrong_until: Duration,
    /// The try that was right a moment ago, and its send.
    done: Option<Mortal<(AttemptId, String)>>,
}

impl SceneEntry {
    fn pass(&mut self, now: Duration) {
        self.code.take_if(|code| code.dies_at <= now);
        self.cool_down.take_if(|cool_down| cool_down.dies_at <= now);
        self.done.take_if(|done| done.dies_at <= now);
        self.days.retain(|_, day| day.dies_at > now);
        self.hour.retain(|(at, _)| *at + HOUR > now);
        if self.wrong_until <= now {
            self.wrong.clear();
        }
    }

    /// When the last of it is over.
    fn ends(&self) -> Duration {
        let each = [
            self.code.as_ref().map(|code| code.dies_at),
            self.cool_down.as_ref().map(|cool_down| cool_down.dies_at),
            self.done.as_ref().map(|done| done.dies_at),
            self.days.values().map(|day| day.dies_at).max(),
            self.hour.back().map(|(at, _)| *at + HOUR),
            Some(self.wrong_until),
        ];
        each.into_iter().flatten().max().unwrap_or_default()
    }

    fn locked(&self, now: Duration, rule: SceneRule) -> Option<Duration> {
        let locked = self.wrong.len() >= rule.max_fail as usize;
        locked.then(|| if self.wrong_until > now { self.wrong_until - now } else { rule.lock })
    }
}

impl MemoryCodes {
    fn number<R>(
        &self,
        key: &SmsKey,
        work: impl FnOnce(&mut SceneEntry, &mut VecDeque<Duration>, Duration) -> R,
    ) -> CodesResult<R> {
        let now = self.clock.monotonic();
        let matters_for = |entry: &NumberEntry| {
            let ends = entry.scenes.values().map(SceneEntry::ends).chain(entry.sends.back().map(|at| *at + HOUR));
            ends.max().unwrap_or_default().saturating_sub(now)
        };
        change(&self.numbers, &key.digest().to_owned(), matters_for, |entry| {
            entry.sends.retain(|at| *at + HOUR > now);
            let scene = entry.scenes.entry(key.scene().to_owned()).or_default();
            scene.pass(now);
            work(scene, &mut entry.sends, now)
        })
    }
}

#[async_trait]
impl SmsCodes for MemoryCodes {
    async fn sms_look(&self, key: &SmsKey, rule: SceneRule) -> CodesResult<NumberState> {
        self.number(key, |scene, sends, now| NumberState {
            locked: scene.locked(now, rule),
            sends: u32::try_from(sends.len()).unwrap_or(u32::MAX),
        })
    }

    async fn sms_state(&self, key: &SmsKey, day: &str, rule: SceneRule) -> CodesResult<SceneState> {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.number(key, |scene, _, now| SceneState {
            code: scene.code.as_ref().map(|code| code.dies_at - now),
            cool_down: scene.cool_down.as_ref().map(|cool_down| cool_down.dies_at - now),
            wrong: count(scene.wrong.len()),
            locked: scene.locked(now, rule),
            hour: count(scene.hour.len()),
            day: scene.days.get(day).map_or(0, |day| day.value),
        })
    }

    async fn sms_send(&self, key: &SmsKey, send: &NewSend<'_>) -> CodesResult<SendStep> {
        let rule = send.rule;
        self.number(key, |scene, sends, now| {
            if scene.code.as_ref().is_some_and(|code| code.value.1 == send.id) {
                return SendStep::Taken;
            }
            if let Some(left) = scene.locked(now, rule) {
                return SendStep::Locked(left);
            }
            if send.without_captcha.is_some_and(|free| sends.len() >= free as usize) {
                return SendStep::NeedsCaptcha;
            }
            if let Some(cool_down) = &scene.cool_down {
                return SendStep::TooSoon(cool_down.dies_at - now);
            }
            if scene.hour.len() >= rule.hourly as usize {
                // The one that must leave before there is a place.
                let at = scene.hour.len().checked_sub(rule.hourly.max(1) as usize).and_then(|n| scene.hour.get(n));
                return SendStep::TooSoon(at.map_or(HOUR, |(at, _)| (*at + HOUR).saturating_sub(now)));
            }
            let day = scene.days.entry(send.day.to_owned()).or_insert(Mortal { value: 0, dies_at: now + DAY });
            if day.value >= rule.daily {
                return SendStep::DayFull;
            }
            day.value += 1;
            scene.hour.push_back((now, send.id.to_owned()));
            sends.push_back(now);
            if !rule.cool_down.is_zero() {
                scene.cool_down = Some(Mortal { value: send.id.to_owned(), dies_at: now + rule.cool_down });
            }
            scene.code = Some(Mortal { value: (send.code.clone(), send.id.to_owned()), dies_at: now + rule.ttl });
            SendStep::Taken
        })
    }

    async fn sms_undo(&self, key: &SmsKey, id: &str, undo: Undo) -> CodesResult<()> {
        self.number(key, |scene, _, _| {
            if undo == Undo::CodeCoolDownAndHour {
                scene.cool_down.take_if(|cool_down| cool_down.value == id);
                scene.hour.retain(|(_, send)| send != id);
            }
            scene.code.take_if(|code| code.value.1 == id);
        })
    }

    async fn sms_try(&self, key: &SmsKey, attempt: &Try<'_>) -> CodesResult<TryStep> {
        let rule = attempt.rule;
        self.number(key, |scene, _, now| {
            if let Some(done) = &scene.done
                && done.value.0 == *attempt.attempt
            {
                return TryStep::Right(done.value.1.clone());
            }
            let left = |wrong: usize| rule.max_fail.saturating_sub(u32::try_from(wrong).unwrap_or(u32::MAX));
            if scene.wrong.contains(attempt.attempt) {
                return TryStep::Wrong(left(scene.wrong.len()));
            }
            if let Some(left) = scene.locked(now, rule) {
                return TryStep::Locked(left);
            }
            let Some(code) = &scene.code else { return TryStep::None };
            let (digits, id) = &code.value;
            if !bool::from(digits.expose().as_bytes().ct_eq(attempt.code.expose().as_bytes())) {
                scene.wrong.push(attempt.attempt.clone());
                scene.wrong_until = now + rule.lock;
                return TryStep::Wrong(left(scene.wrong.len()));
            }
            let id = id.clone();
            let value = (attempt.attempt.clone(), id.clone());
            scene.done = Some(Mortal { value, dies_at: now + attempt.repeatable });
            scene.code = None;
            scene.wrong.clear();
            scene.wrong_until = Duration::ZERO;
            TryStep::Right(id)
        })
    }
}
