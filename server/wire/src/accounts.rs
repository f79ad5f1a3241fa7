//! Requests and responses of SMS codes and accounts. Times are Unix milliseconds (UTC), durations seconds.

use crate::Secret;
use crate::api::UnknownWord;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a code is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
pub enum Via {
    /// Written.
    #[default]
    Sms,
    /// Spoken.
    Voice,
}

impl TryFrom<String> for Via {
    type Error = UnknownWord;
    fn try_from(word: String) -> Result<Self, UnknownWord> {
        [Self::Sms, Self::Voice].into_iter().find(|via| via.as_str() == word).ok_or(UnknownWord)
    }
}

impl Via {
    /// The wire's and the database's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sms => "sms",
            Self::Voice => "voice",
        }
    }
}

/// `POST /api/sms/send`: send a code to a number.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SendSmsRequest {
    /// The number; for `confirm` the account's own, which is what is taken where it is missing.
    #[schema(value_type = Option<String>, pattern = r"^(\+86)?1[3-9][0-9]{9}$", example = "13800000001")]
    pub mobile: Option<Secret>,
    /// `login`, `register`, `reset_password`, `change_mobile` or `confirm`; the last two with a session.
    #[schema(pattern = r"^(login|register|reset_password|change_mobile|confirm)$")]
    pub scene: String,
    /// A solved challenge of `POST /api/captcha`, after a 4007.
    #[schema(value_type = Option<String>)]
    pub captcha_token: Option<Secret>,
    /// `sms` or `voice`.
    pub via: Option<Via>,
}

/// A code is on its way: the same answer whether the number is known or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SmsSent {
    /// How long the code counts.
    pub expire_in: u32,
    /// When another may be asked for.
    pub retry_after: u32,
}

/// `data` of 4004.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Remaining {
    /// Tries that are left before the lock.
    pub remaining: u32,
}

/// `data` of a 1403 with a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    /// `no_mobile` or `no_account`.
    pub reason: String,
}

/// `POST /api/captcha`: a challenge for a number and a scene.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CaptchaRequest {
    /// The number; for `confirm` the account's own, which is what is taken where it is missing.
    #[schema(value_type = Option<String>, pattern = r"^(\+86)?1[3-9][0-9]{9}$", example = "13800000001")]
    pub mobile: Option<Secret>,
    /// The scene.
    #[schema(pattern = r"^(login|register|reset_password|change_mobile|confirm)$")]
    pub scene: String,
}

/// A proof-of-work challenge as ALTCHA defines it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CaptchaChallenge {
    /// `SHA-256`.
    pub algorithm: String,
    /// Lower-case hex of the hash of `salt` and the number sought, one behind the other.
    pub challenge: String,
    /// The number sought is not larger.
    pub maxnumber: u32,
    /// In front of the number; ends with `&`.
    pub salt: String,
    /// Of the challenge.
    pub signature: String,
}

/// What a solver sends back: Base64 of this as JSON is the `captchaToken`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CaptchaSolution {
    /// As in the challenge.
    pub algorithm: String,
    /// As in the challenge.
    pub challenge: String,
    /// The number that was found.
    pub number: u32,
    /// As in the challenge.
    pub salt: String,
    /// As in the challenge.
    pub signature: String,
}

/// `POST /api/auth/sms-login`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SmsLoginRequest {
    /// The number.
    #[schema(value_type = String, pattern = r"^(\+86)?1[3-9][0-9]{9}$", example = "13800000001")]
    pub mobile: Secret,
    /// A code of the scene `login`.
    #[schema(value_type = String, pattern = r"^[0-9]{6}$")]
    pub code: Secret,
    /// The caller's name for this attempt: a repeat within 10 s succeeds again with a fresh token.
    #[schema(pattern = r"^[0-9A-Za-z_-]{1,64}$")]
    pub request_id: Option<String>,
}

/// `POST /api/auth/register`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegisterRequest {
    /// The number.
    #[schema(value_type = String, pattern = r"^(\+86)?1[3-9][0-9]{9}$", example = "13800000001")]
    pub mobile: Secret,
    /// A code of the scene `register`.
    #[schema(value_type = String, pattern = r"^[0-9]{6}$")]
    pub code: Secret,
    /// The name of a new account; a known number keeps its own.
    #[schema(min_length = 1, max_length = 64)]
    pub name: String,
    /// The caller's name for this attempt: a repeat within 10 s succeeds again with a fresh token.
    #[schema(pattern = r"^[0-9A-Za-z_-]{1,64}$")]
    pub request_id: Option<String>,
}

/// `POST /api/auth/reset-password`; not for admins.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResetPasswordRequest {
    /// The number.
    #[schema(value_type = String, pattern = r"^(\+86)?1[3-9][0-9]{9}$", example = "13800000001")]
    pub mobile: Secret,
    /// A code of the scene `reset_password`.
    #[schema(value_type = String, pattern = r"^[0-9]{6}$")]
    pub code: Secret,
    /// 8 characters and more.
    #[schema(value_type = String, min_length = 8)]
    pub new_password: Secret,
}

/// `POST /api/auth/change-mobile`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeMobileRequest {
    /// The new number.
    #[schema(value_type = String, pattern = r"^(\+86)?1[3-9][0-9]{9}$", example = "13800000001")]
    pub mobile: Secret,
    /// A code of the scene `change_mobile`, sent to the new number.
    #[schema(value_type = String, pattern = r"^[0-9]{6}$")]
    pub code: Secret,
    /// A code of the scene `confirm`, sent to the old number.
    #[schema(value_type = String, pattern = r"^[0-9]{6}$")]
    pub old_code: Secret,
}

/// `POST /api/auth/password`: sets the caller's own password.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetPasswordRequest {
    /// 8 characters and more.
    #[schema(value_type = String, min_length = 8)]
    pub new_password: Secret,
}

/// `POST /open-api/sms/send`: a code for another system of the house.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSmsSend {
    /// The number.
    #[schema(value_type = Option<String>, pattern = r"^(\+86)?1[3-9][0-9]{9}$", example = "13800000001")]
    pub mobile: Option<Secret>,
    /// A mailbox in place of a number.
    #[schema(value_type = Option<String>, format = "email", max_length = 254)]
    pub email: Option<Secret>,
    /// A scene of the settings; the product's own are not for machines.
    pub scene: String,
    /// `sms` or `voice`.
    pub via: Option<Via>,
}

/// `POST /open-api/sms/verify`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSmsVerify {
    /// The number.
    #[schema(value_type = Option<String>, pattern = r"^(\+86)?1[3-9][0-9]{9}$", example = "13800000001")]
    pub mobile: Option<Secret>,
    /// A mailbox in place of a number.
    #[schema(value_type = Option<String>, format = "email", max_length = 254)]
    pub email: Option<Secret>,
    /// The scene of the send.
    pub scene: String,
    /// The code.
    #[schema(value_type = String, pattern = r"^[0-9]{6}$")]
    pub code: Secret,
    /// The caller's name for this attempt: a repeat within 10 s succeeds again.
    #[schema(pattern = r"^[0-9A-Za-z_-]{1,64}$")]
    pub request_id: Option<String>,
}

/// A code was right, and is used up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MachineSmsVerified {
    /// `true`; a wrong code is an error.
    pub verified: bool,
}
