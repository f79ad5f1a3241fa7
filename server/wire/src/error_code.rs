//! The error codes of the contract and the envelope that carries them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $status:literal, $name:literal;)*) => {
        /// An error of the contract: its number, its HTTP status and its name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $variant,)* }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant,)*];

            /// The number in the envelope.
            pub const fn code(self) -> i32 { match self { $(Self::$variant => $code,)* } }

            /// The HTTP status that goes with it.
            pub const fn status(self) -> u16 { match self { $(Self::$variant => $status,)* } }

            /// The name in the table.
            pub const fn name(self) -> &'static str { match self { $(Self::$variant => $name,)* } }

            /// The error with this number.
            pub const fn from_code(code: i32) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

error_codes! {
    /// Malformed, missing, ill-typed or out of range; `field`.
    BadRequest = 1400, 400, "BAD_REQUEST";
    /// No session, expired, revoked; a wrong password.
    Unauthenticated = 1401, 401, "UNAUTHENTICATED";
    /// The role may not; another tenant than the session's.
    Forbidden = 1403, 403, "FORBIDDEN";
    /// Nothing is there.
    NotFound = 1404, 404, "NOT_FOUND";
    /// `requestId` used for another order, or an illegal status change (`status`).
    Conflict = 1409, 409, "CONFLICT";
    /// A limit; `retryAfter`.
    TooManyRequests = 1429, 429, "TOO_MANY_REQUESTS";
    /// A bug; nothing inside it shows.
    Internal = 1500, 500, "INTERNAL";
    /// The database cannot be reached, or it is unknown whether it committed.
    Unavailable = 1503, 503, "UNAVAILABLE";
    /// No such order for this caller.
    BookingOrderNotExists = 2001, 404, "BOOKING_ORDER_NOT_EXISTS";
    /// The order is not `paid`; `status`, `consumedAt`, `consumedBy`, `device`.
    StatusNotAllowConsume = 2002, 409, "BOOKING_ORDER_STATUS_NOT_ALLOW_CONSUME";
    /// No code, a wrong code, an expired code: one answer.
    VerifyCodeInvalid = 2003, 422, "VERIFY_CODE_INVALID";
    /// The code store cannot be reached; nothing is redeemed without it.
    VerifyCodeUnavailable = 2004, 503, "VERIFY_CODE_UNAVAILABLE";
    /// Operator, address or order limit; `retryAfter`.
    ConsumeTooFrequent = 2005, 429, "CONSUME_TOO_FREQUENT";
    /// By-code matched several orders; `candidates`.
    VerifyCodeAmbiguous = 2006, 409, "VERIFY_CODE_AMBIGUOUS";
    /// A guide frozen after repeated failures, or by an admin.
    OperatorFrozen = 2007, 403, "OPERATOR_FROZEN";
    /// Ill-formed, or its prefix is not allowed.
    MobileInvalid = 4001, 400, "MOBILE_INVALID";
    /// Cool-down or hourly limit; `retryAfter`.
    SmsTooFrequent = 4002, 429, "SMS_TOO_FREQUENT";
    /// This number's limit for the day.
    SmsDailyLimit = 4003, 429, "SMS_DAILY_LIMIT";
    /// `remaining` tries.
    SmsCodeWrong = 4004, 422, "SMS_CODE_WRONG";
    /// None was sent, it ran out, or it has been used.
    SmsCodeExpired = 4005, 422, "SMS_CODE_EXPIRED";
    /// Too many wrong tries; `retryAfter`.
    SmsCodeLocked = 4006, 429, "SMS_CODE_LOCKED";
    /// A captcha is asked for.
    SmsNeedCaptcha = 4007, 403, "SMS_NEED_CAPTCHA";
    /// No channel took it.
    SmsSendFailed = 4008, 502, "SMS_SEND_FAILED";
    /// The address's limit; `retryAfter`.
    SmsIpLimit = 4009, 429, "SMS_IP_LIMIT";
    /// Not on the list of scenes for this way in.
    SmsSceneInvalid = 4010, 400, "SMS_SCENE_INVALID";
}

/// Every answer of the API: `code` 0 is success, anything else an [`ErrorCode`].
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Envelope<T> {
    /// 0, or the error's number.
    pub code: i32,
    /// Empty, or what went wrong in the caller's language.
    pub msg: String,
    /// The answer; `null` in errors unless the table says otherwise.
    pub data: Option<T>,
}
