//! SMS codes in the code store: what a number has been sent, what was tried, and what is counted of both.

use super::{AttemptId, CodesResult};
use async_trait::async_trait;
use std::time::Duration;
use wire::SmsCode;

/// One number in one scene, known by its digest alone. All keys carry the digest in braces, so that they share a slot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SmsKey {
    prefix: String,
    scene: String,
    digest: String,
}

impl SmsKey {
    /// The key of a number's digest in a scene, behind the deployment's prefix.
    pub fn new(prefix: &str, scene: &str, digest: &str) -> Self {
        Self { prefix: prefix.to_owned(), scene: scene.to_owned(), digest: digest.to_owned() }
    }

    /// The digest of tenant and number.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    pub(super) fn scene(&self) -> &str {
        &self.scene
    }

    fn named(&self, name: &str) -> String {
        format!("{}sms:{name}:{}:{{{}}}", self.prefix, self.scene, self.digest)
    }

    /// The code, six digits and nothing else.
    pub(super) fn code(&self) -> String {
        self.named("code")
    }

    /// The cool-down.
    pub(super) fn cool_down(&self) -> String {
        self.named("cd")
    }

    /// Sends of the last hour.
    pub(super) fn hour(&self) -> String {
        self.named("hour")
    }

    /// Sends of a day (`YYYYMMDD`, the venue's zone).
    pub(super) fn day(&self, day: &str) -> String {
        self.named(&format!("day:{day}"))
    }

    /// Wrong tries.
    pub(super) fn fail(&self) -> String {
        self.named("fail")
    }

    /// The id of the send that the code belongs to.
    pub(super) fn send(&self) -> String {
        self.named("send")
    }

    /// The try that was right a moment ago.
    pub(super) fn done(&self) -> String {
        self.named("done")
    }

    /// Sends of the last hour in all scenes.
    pub(super) fn number(&self) -> String {
        format!("{}sms:number:{{{}}}", self.prefix, self.digest)
    }
}

/// What a scene goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SceneRule {
    /// Life of a code.
    pub ttl: Duration,
    /// Between two sends.
    pub cool_down: Duration,
    /// Sends in an hour.
    pub hourly: u32,
    /// Sends in a day.
    pub daily: u32,
    /// Wrong tries before the lock.
    pub max_fail: u32,
    /// How long the lock lasts, from the last wrong try.
    pub lock: Duration,
}

/// A code that is to be sent.
#[derive(Debug)]
pub struct NewSend<'a> {
    /// The send's own id; a step that is run twice with it counts once.
    pub id: &'a str,
    /// The code.
    pub code: &'a SmsCode,
    /// The day (`YYYYMMDD`, the venue's zone).
    pub day: &'a str,
    /// Sends to the number in an hour, all scenes, that go without a captcha; nothing where one was solved.
    pub without_captcha: Option<u32>,
    /// The scene's rule.
    pub rule: SceneRule,
}

/// What came of a send's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendStep {
    /// Counted; cool-down and code are written.
    Taken,
    /// Too many wrong tries; for so long.
    Locked(Duration),
    /// The number has had many sends: first a captcha. Nothing is counted.
    NeedsCaptcha,
    /// The cool-down, or the hour's limit; for so long. Nothing is counted.
    TooSoon(Duration),
    /// The day's limit. Nothing is counted.
    DayFull,
}

/// What there is to know of a number before a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberState {
    /// Locked for so long.
    pub locked: Option<Duration>,
    /// Sends of the last hour in all scenes.
    pub sends: u32,
}

/// What there is of a number in a scene; of its code how long it lives, and never which it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SceneState {
    /// The code lives for so long.
    pub code: Option<Duration>,
    /// The cool-down lasts for so long.
    pub cool_down: Option<Duration>,
    /// Wrong tries that count.
    pub wrong: u32,
    /// Locked for so long.
    pub locked: Option<Duration>,
    /// Sends of the last hour.
    pub hour: u32,
    /// Sends of the day.
    pub day: u32,
}

/// One try of a code.
#[derive(Debug)]
pub struct Try<'a> {
    /// Run twice with this it counts once, and a right one stays right for as long as `repeatable` says.
    pub attempt: &'a AttemptId,
    /// What was typed.
    pub code: &'a SmsCode,
    /// Makes the comparison in the store tell nothing by its time: never used before, never to be guessed.
    pub blind: [u8; 16],
    /// How long the same attempt stays right.
    pub repeatable: Duration,
    /// The scene's rule.
    pub rule: SceneRule,
}

/// What came of a try. Count, lock and consumption are one step with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TryStep {
    /// Right, and used up; the id of the send that it came with.
    Right(String),
    /// Wrong, and counted; so many are left.
    Wrong(u32),
    /// There is no code; nothing is counted.
    None,
    /// Too many wrong tries, for so long; nothing was compared.
    Locked(Duration),
}

/// What is undone of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undo {
    /// Code, cool-down and the hour's count: no channel took it, so it can be tried again at once. The day's count stays, and
    /// so does what leads to a captcha: or a few requests could use a number's whole day up while the channels are down.
    CodeCoolDownAndHour,
    /// The code alone: the provider has a limit for this number.
    Code,
}

/// Every change is one atomic step on one number's keys, safe to run twice.
#[async_trait]
pub trait SmsCodes: std::fmt::Debug + Send + Sync {
    /// Whether a number is locked in a scene, and how much was sent to it.
    async fn sms_look(&self, key: &SmsKey, rule: SceneRule) -> CodesResult<NumberState>;

    /// Everything about a number in a scene but its code, for whoever looks for what went wrong; `day` as in [`NewSend`].
    async fn sms_state(&self, key: &SmsKey, day: &str, rule: SceneRule) -> CodesResult<SceneState>;

    /// Lock, captcha, cool-down, hour's and day's limit, count, write of cool-down and code.
    async fn sms_send(&self, key: &SmsKey, send: &NewSend<'_>) -> CodesResult<SendStep>;

    /// Takes back what a send wrote, as far as it still is this send's.
    async fn sms_undo(&self, key: &SmsKey, id: &str, undo: Undo) -> CodesResult<()>;

    /// Looks at the lock, compares, and counts or consumes.
    async fn sms_try(&self, key: &SmsKey, attempt: &Try<'_>) -> CodesResult<TryStep>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_the_contracts() {
        let key = SmsKey::new("", "login", "9f3c");
        assert_eq!(key.code(), "sms:code:login:{9f3c}");
        assert_eq!(key.cool_down(), "sms:cd:login:{9f3c}");
        assert_eq!(key.hour(), "sms:hour:login:{9f3c}");
        assert_eq!(key.day("20260801"), "sms:day:20260801:login:{9f3c}");
        assert_eq!(key.fail(), "sms:fail:login:{9f3c}");
        assert_eq!(SmsKey::new("a:", "login", "9f3c").code(), "a:sms:code:login:{9f3c}");
    }
}
