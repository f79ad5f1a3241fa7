//! What the parts say to each other: requests, responses, error codes, the QR payload and the cleaning of numbers.
//!
//! Paths, field names and numbers are a contract with other systems; this crate has no I/O, no clock and no randomness.

pub mod accounts;
pub mod api;
mod clean;
mod error_code;
mod numbers;
pub mod qr;
mod secret;

pub use clean::{clean_digits, trim};
pub use error_code::{Envelope, ErrorCode};
pub use numbers::{InvalidNumber, Mobile, OrderNo, RequestId, SmsCode, TaskNo, TenantId, VerifyCode};
pub use secret::Secret;
