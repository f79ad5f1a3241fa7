//! SMS codes on Redis: one script a step, all keys of a number in one slot.

use super::super::sms::{NewSend, NumberState, SceneRule, SceneState, SendStep, SmsCodes, SmsKey, Try, TryStep, Undo};
use super::{CodesResult, RedisCodes, from_millis, millis};
use crate::codes::CodesAway;
use crate::signature::hex;
use async_trait::async_trait;
use sha1::{Digest, Sha1};
use std::time::Duration;

/// Count of wrong tries, how long it lasts, and sends of the last hour.
const LOOK: &str = "
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
return {redis.call('SCARD', KEYS[1]), redis.call('PTTL', KEYS[1]),
  redis.call('ZCOUNT', KEYS[2], '(' .. string.format('%d', now - 3600000), '+inf')}";

/// How long code, send's id and cool-down live, sends of the hour and the day, count of wrong tries and how long it lasts.
/// No value of a code leaves the store.
const STATE: &str = "
local code, send, cd, hour, day, fail = unpack(KEYS)
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
return {redis.call('PTTL', code), redis.call('EXISTS', send), redis.call('PTTL', cd),
  redis.call('ZCOUNT', hour, '(' .. string.format('%d', now - 3600000), '+inf'),
  tonumber(redis.call('GET', day) or '0'), redis.call('SCARD', fail), redis.call('PTTL', fail)}";

/// Every limit of a number, then every count, cool-down and code. The send's id is written first of all, so that the same
/// send is known again: whatever stands beside it, it was counted.
const SEND: &str = "
local code, send, cd, hour, day, fail, number = unpack(KEYS)
local id, digits, ttl, cool, hourly, daily, most_wrong, free = unpack(ARGV)
if redis.call('GET', send) == id then return {'taken', 0} end
if redis.call('SCARD', fail) >= tonumber(most_wrong) then return {'locked', redis.call('PTTL', fail)} end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local since = '(' .. string.format('%d', now - 3600000)
if free ~= '' and redis.call('ZCOUNT', number, since, '+inf') >= tonumber(free) then return {'captcha', 0} end
local left = redis.call('PTTL', cd)
if left > 0 then return {'soon', left} end
if redis.call('ZCOUNT', hour, since, '+inf') >= tonumber(hourly) then
  local at = redis.call('ZREVRANGEBYSCORE', hour, '+inf', since, 'WITHSCORES', 'LIMIT', math.max(tonumber(hourly) - 1, 0), 1)
  return {'soon', (tonumber(at[2]) or now) + 3600000 - now}
end
if tonumber(redis.call('GET', day) or '0') >= tonumber(daily) then return {'day', 0} end
redis.call('SET', send, id, 'PX', ttl)
redis.call('SET', day, 0, 'EX', 86400, 'NX')
redis.call('INCR', day)
for _, sends in ipairs({hour, number}) do
  redis.call('ZADD', sends, now, id)
  redis.call('PEXPIRE', sends, 3600000)
  redis.call('ZREMRANGEBYSCORE', sends, '-inf', now - 3600000)
end
if tonumber(cool) > 0 then redis.call('SET', cd, id, 'PX', cool) end
redis.call('SET', code, digits, 'PX', ttl)
return {'taken', 0}";

/// Takes back what is still this send's. Its id goes last.
const UNDO: &str = "
local code, send, cd, hour = unpack(KEYS)
if ARGV[2] == '1' then
  if redis.call('GET', cd) == ARGV[1] then redis.call('DEL', cd) end
  redis.call('ZREM', hour, ARGV[1])
end
if redis.call('GET', send) == ARGV[1] then redis.call('DEL', code, send) end
return 1";

/// One try. What was typed comes as the SHA-1 of a number used once and the digits; the store makes the same of the code it
/// has, so that comparing them tells nothing of either by its time.
const TRY: &str = "
local code, send, fail, done = unpack(KEYS)
local attempt, blind, typed, most_wrong, lock, repeatable = unpack(ARGV)
local last = redis.call('GET', done)
if last and string.sub(last, 1, #attempt + 1) == attempt .. ':' then return {'right', 0, string.sub(last, #attempt + 2)} end
local wrong = redis.call('SCARD', fail)
if redis.call('SISMEMBER', fail, attempt) == 1 then return {'wrong', math.max(tonumber(most_wrong) - wrong, 0), ''} end
if wrong >= tonumber(most_wrong) then return {'locked', redis.call('PTTL', fail), ''} end
local digits, id = redis.call('GET', code), redis.call('GET', send)
if not digits or not id then return {'none', 0, ''} end
if redis.sha1hex(blind .. digits) ~= typed then
  redis.call('SADD', fail, attempt)
  redis.call('PEXPIRE', fail, lock)
  return {'wrong', tonumber(most_wrong) - wrong - 1, ''}
end
redis.call('SET', done, attempt .. ':' .. id, 'PX', repeatable)
redis.call('DEL', code, send, fail)
return {'right', 0, id}";

fn lock_left(left: i64, rule: SceneRule) -> Duration {
    if left > 0 { from_millis(left) } else { rule.lock }
}

fn unknown() -> CodesAway {
    CodesAway("a script gave an answer that is not known".to_owned())
}

#[async_trait]
impl SmsCodes for RedisCodes {
    async fn sms_look(&self, key: &SmsKey, rule: SceneRule) -> CodesResult<NumberState> {
        let (wrong, left, sends): (u32, i64, u32) = self.script(LOOK, &[&key.fail(), &key.number()], &[]).await?;
        Ok(NumberState { locked: (wrong >= rule.max_fail).then(|| lock_left(left, rule)), sends })
    }

    async fn sms_state(&self, key: &SmsKey, day: &str, rule: SceneRule) -> CodesResult<SceneState> {
        let keys = [key.code(), key.send(), key.cool_down(), key.hour(), key.day(day), key.fail()];
        let (code, known, cool_down, hour, day, wrong, left): (i64, u8, i64, u32, u32, u32, i64) =
            self.script(STATE, &keys.each_ref().map(String::as_str), &[]).await?;
        let alive = |left: i64| (left > 0).then(|| from_millis(left));
        Ok(SceneState {
            // A code without its send is none.
            code: alive(code).filter(|_| known == 1),
            cool_down: alive(cool_down),
            wrong,
            locked: (wrong >= rule.max_fail).then(|| lock_left(left, rule)),
            hour,
            day,
        })
    }

    async fn sms_send(&self, key: &SmsKey, send: &NewSend<'_>) -> CodesResult<SendStep> {
        let rule = send.rule;
        let keys = [key.code(), key.send(), key.cool_down(), key.hour(), key.day(send.day), key.fail(), key.number()];
        let free = send.without_captcha.map(|free| free.to_string()).unwrap_or_default();
        let (ttl, cool) = (millis(rule.ttl), millis(rule.cool_down));
        let (hourly, daily, most_wrong) = (rule.hourly.to_string(), rule.daily.to_string(), rule.max_fail.to_string());
        let arguments = [send.id, send.code.expose(), &ttl, &cool, &hourly, &daily, &most_wrong, &free];
        let (step, left): (String, i64) = self.script(SEND, &keys.each_ref().map(String::as_str), &arguments).await?;
        Ok(match step.as_str() {
            "taken" => SendStep::Taken,
            "locked" => SendStep::Locked(lock_left(left, rule)),
            "captcha" => SendStep::NeedsCaptcha,
            "soon" => SendStep::TooSoon(from_millis(left)),
            "day" => SendStep::DayFull,
            _ => return Err(unknown()),
        })
    }

    async fn sms_undo(&self, key: &SmsKey, id: &str, undo: Undo) -> CodesResult<()> {
        let keys = [key.code(), key.send(), key.cool_down(), key.hour()];
        let whole = if undo == Undo::CodeCoolDownAndHour { "1" } else { "0" };
        self.script(UNDO, &keys.each_ref().map(String::as_str), &[id, whole]).await
    }

    async fn sms_try(&self, key: &SmsKey, attempt: &Try<'_>) -> CodesResult<TryStep> {
        let rule = attempt.rule;
        let keys = [key.code(), key.send(), key.fail(), key.done()];
        let blind = hex(&attempt.blind);
        let typed = hex(&Sha1::digest(format!("{blind}{}", attempt.code.expose())));
        let arguments = [
            attempt.attempt.0.as_str(),
            &blind,
            &typed,
            &rule.max_fail.to_string(),
            &millis(rule.lock),
            &millis(attempt.repeatable),
        ];
        let (step, number, id): (String, i64, String) =
            self.script(TRY, &keys.each_ref().map(String::as_str), &arguments).await?;
        Ok(match step.as_str() {
            "right" => TryStep::Right(id),
            "wrong" => TryStep::Wrong(u32::try_from(number).unwrap_or(0)),
            "none" => TryStep::None,
            "locked" => TryStep::Locked(lock_left(number, rule)),
            _ => return Err(unknown()),
        })
    }
}
