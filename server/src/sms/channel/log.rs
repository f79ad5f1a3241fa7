//! The channel for a demo: the log. It prints a number's end, and the code only when told to.

use super::{Answer, Carrier, Request};
use async_trait::async_trait;

#[derive(Debug)]
pub(super) struct Log {
    /// `sms.log_codes`
    pub(super) codes: bool,
}

#[async_trait]
impl Carrier for Log {
    async fn carry(&self, request: &Request<'_>) -> Answer {
        let message = request.message;
        let (to, scene) = (&message.to, &message.scene);
        if self.codes {
            tracing::info!(?to, scene, code = message.code.expose(), "this SMS code would have been sent");
        } else {
            tracing::info!(?to, scene, "an SMS code would have been sent; `sms.log_codes` shows it");
        }
        Answer::Taken(None)
    }
}
