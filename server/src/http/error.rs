//! The one place where an error becomes an answer of the contract.

use crate::codes::CodesAway;
use crate::db::DbError;
use crate::text::{Lang, Text};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use wire::accounts::{Reason, Remaining};
use wire::api::{BadField, OrderState, RetryAfter};
use wire::{Envelope, ErrorCode};

/// What an API handler returns.
pub(crate) type ApiResult<T> = Result<Answer<T>, ApiError>;

/// A success: `{"code": 0, "msg": "", "data": …}`.
#[derive(Debug)]
pub(crate) struct Answer<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        axum::Json(Envelope { code: 0, msg: String::new(), data: Some(self.0) }).into_response()
    }
}

/// An error of the contract on its way to the caller. The edge gives it the caller's language.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    code: ErrorCode,
    status: StatusCode,
    text: Text,
    data: serde_json::Value,
    /// Seconds, for the header of a 429.
    retry_after: Option<i64>,
    /// For the log alone.
    cause: Option<Arc<str>>,
}

impl ApiError {
    fn new(code: ErrorCode, text: Text) -> Self {
        let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { code, status, text, data: serde_json::Value::Null, retry_after: None, cause: None }
    }

    /// 1400: a field is missing, ill-typed or out of range.
    pub(crate) fn bad_field(field: &str, text: Text) -> Self {
        Self::new(ErrorCode::BadRequest, text).with(BadField { field: field.to_owned() })
    }

    /// 1400 without a field.
    pub(crate) fn bad_request(text: Text) -> Self {
        Self::new(ErrorCode::BadRequest, text)
    }

    /// 1400 at 413.
    pub(crate) fn too_large() -> Self {
        Self { status: StatusCode::PAYLOAD_TOO_LARGE, ..Self::bad_request(Text::TooLarge) }
    }

    /// 1400 at 408.
    pub(crate) fn too_slow() -> Self {
        Self { status: StatusCode::REQUEST_TIMEOUT, ..Self::bad_request(Text::TooSlow) }
    }

    /// 1400 at 415.
    pub(crate) fn not_json() -> Self {
        Self { status: StatusCode::UNSUPPORTED_MEDIA_TYPE, ..Self::bad_request(Text::NotJson) }
    }

    /// 1400 at 415, for uploads.
    pub(crate) fn no_order_file() -> Self {
        Self { text: Text::NotAnOrderFile, ..Self::not_json() }
    }

    /// 1400 at 405.
    pub(crate) fn wrong_method() -> Self {
        Self { status: StatusCode::METHOD_NOT_ALLOWED, ..Self::bad_request(Text::WrongMethod) }
    }

    /// 1401.
    pub(crate) fn unauthenticated(text: Text) -> Self {
        Self::new(ErrorCode::Unauthenticated, text)
    }

    /// 1403.
    pub(crate) fn forbidden(text: Text) -> Self {
        Self::new(ErrorCode::Forbidden, text)
    }

    /// 1403 with a reason that a screen can tell apart.
    pub(crate) fn forbidden_because(text: Text, reason: &str) -> Self {
        Self::forbidden(text).with(Reason { reason: reason.to_owned() })
    }

    /// 4004 with the tries that are left.
    pub(crate) fn sms_code_wrong(remaining: u32) -> Self {
        Self::from(ErrorCode::SmsCodeWrong).with(Remaining { remaining })
    }

    /// 1409.
    pub(crate) fn conflict(text: Text) -> Self {
        Self::new(ErrorCode::Conflict, text)
    }

    /// 2002, with where the order stands.
    pub(crate) fn not_paid(state: OrderState) -> Self {
        Self::from(ErrorCode::StatusNotAllowConsume).with(state)
    }

    /// A limit, with the seconds until a try may succeed, rounded up.
    pub(crate) fn retry_after(code: ErrorCode, wait: Duration) -> Self {
        Self::from(code).again_after(wait).with(RetryAfter { retry_after: whole_seconds(wait) })
    }

    /// With the header alone: `data` is for what the contract names.
    pub(crate) fn again_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(whole_seconds(wait)), ..self }
    }

    /// With another text.
    pub(crate) fn saying(self, text: Text) -> Self {
        Self { text, ..self }
    }

    /// With `data`.
    pub(crate) fn with(mut self, data: impl Serialize) -> Self {
        self.data = serde_json::to_value(data).unwrap_or_default();
        self
    }

    fn because(mut self, cause: &impl ToString) -> Self {
        self.cause = Some(cause.to_string().into());
        self
    }

    /// The code that the caller sees.
    pub(crate) fn code(&self) -> ErrorCode {
        self.code
    }

    /// The text that the caller reads.
    pub(crate) fn text(&self) -> Text {
        self.text
    }

    /// Writes what the operator should know.
    pub(crate) fn log(&self) {
        if let Some(cause) = &self.cause {
            tracing::error!(code = self.code.code(), %cause, "a request failed");
        }
    }

    /// The answer in a language; keeps the headers that `response` has (a 405's `Allow`).
    pub(crate) fn render(&self, lang: Lang, response: Response) -> Response {
        let envelope = Envelope { code: self.code.code(), msg: self.text.say(lang).to_owned(), data: Some(&self.data) };
        let mut answer = (self.status, axum::Json(envelope)).into_response();
        for (name, value) in response.headers() {
            if !matches!(*name, header::CONTENT_TYPE | header::CONTENT_LENGTH) {
                answer.headers_mut().append(name, value.clone());
            }
        }
        if let Some(seconds) = self.retry_after {
            answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        answer
    }
}

fn whole_seconds(wait: Duration) -> i64 {
    i64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(i64::MAX).max(1)
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<ErrorCode> for ApiError {
    fn from(code: ErrorCode) -> Self {
        let text = match code {
            ErrorCode::Unauthenticated => Text::NotSignedIn,
            ErrorCode::Forbidden => Text::Forbidden,
            ErrorCode::NotFound => Text::NotFound,
            ErrorCode::Conflict => Text::IllegalChange,
            ErrorCode::TooManyRequests => Text::TooMany,
            ErrorCode::Unavailable => Text::Unavailable,
            ErrorCode::BookingOrderNotExists => Text::NoSuchOrder,
            ErrorCode::StatusNotAllowConsume => Text::NotPaid,
            ErrorCode::VerifyCodeInvalid => Text::CodeInvalid,
            ErrorCode::VerifyCodeUnavailable => Text::CodesAway,
            ErrorCode::ConsumeTooFrequent => Text::TooFrequent,
            ErrorCode::VerifyCodeAmbiguous => Text::CodeAmbiguous,
            ErrorCode::OperatorFrozen => Text::Frozen,
            ErrorCode::BadRequest => Text::BadRequest,
            ErrorCode::MobileInvalid => Text::MobileInvalid,
            ErrorCode::SmsTooFrequent => Text::SmsTooFrequent,
            ErrorCode::SmsDailyLimit => Text::SmsDailyLimit,
            ErrorCode::SmsCodeWrong => Text::SmsCodeWrong,
            ErrorCode::SmsCodeExpired => Text::SmsCodeExpired,
            ErrorCode::SmsCodeLocked => Text::SmsCodeLocked,
            ErrorCode::SmsNeedCaptcha => Text::SmsNeedCaptcha,
            ErrorCode::SmsSendFailed => Text::SmsSendFailed,
            ErrorCode::SmsIpLimit => Text::SmsIpLimit,
            ErrorCode::SmsSceneInvalid => Text::SmsSceneInvalid,
            _ => Text::Internal,
        };
        Self::new(code, text)
    }
}

impl From<DbError> for ApiError {
    fn from(error: DbError) -> Self {
        let code = match error {
            DbError::Away(_) | DbError::Deadlock | DbError::TooSlow => ErrorCode::Unavailable,
            // A duplicate that nobody foresaw is a bug, too.
            DbError::Duplicate | DbError::Bug(_) => ErrorCode::Internal,
        };
        Self::from(code).because(&error)
    }
}

impl From<CodesAway> for ApiError {
    fn from(error: CodesAway) -> Self {
        Self::from(ErrorCode::VerifyCodeUnavailable).because(&error)
    }
}

impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> Self {
        DbError::from(error).into()
    }
}

/// The caller's language.
pub(crate) fn lang_of(headers: &HeaderMap) -> Lang {
    headers.get(header::ACCEPT_LANGUAGE).and_then(|v| v.to_str().ok()).map(Lang::from_accept).unwrap_or_default()
}
