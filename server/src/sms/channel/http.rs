//! The channel `http`: a gateway of the house, to which each code is posted.

use super::{Answer, Carrier, Recipient, Request, Timing, call, word};
use crate::clock::Clock;
use crate::config::ChannelConfig;
use crate::signature;
use async_trait::async_trait;
use reqwest::{Client, StatusCode, Url};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use wire::Secret;

#[derive(Debug)]
pub(super) struct Gateway {
    url: Url,
    secret: Option<Secret>,
    client: Client,
    clock: Arc<dyn Clock>,
}

/// What is posted.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    request_id: &'a str,
    mobile: &'a str,
    scene: &'a str,
    template_id: &'a str,
    params: Params<'a>,
}

#[derive(Serialize)]
struct Params<'a> {
    code: &'a str,
    ttl: &'a str,
}

/// What a gateway may answer: its own id of the message.
#[derive(Deserialize)]
struct Taken {
    id: String,
}

impl Gateway {
    pub(super) fn new(config: &ChannelConfig, timing: Timing, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let url = call::address(config, None)?;
        let client = call::client(&url, timing, config.ca.as_deref())?;
        Ok(Self { url, secret: config.secret.clone(), client, clock })
    }
}

#[async_trait]
impl Carrier for Gateway {
    async fn carry(&self, request: &Request<'_>) -> Answer {
        let message = request.message;
        let Recipient::Mobile(mobile) = &message.to else { return Answer::Refused("is no number".to_owned()) };
        let body = serde_json::json!(Body {
            request_id: &message.id,
            mobile: mobile.expose(),
            scene: &message.scene,
            template_id: request.template.unwrap_or(&message.scene),
            params: Params { code: message.code.expose(), ttl: &message.minutes() },
        })
        .to_string();
        let mut post = self.client.post(self.url.clone()).header("content-type", "application/json");
        if let Some(secret) = &self.secret {
            let now = self.clock.now_ms();
            post = post
                .header(signature::TIMESTAMP, now)
                .header(signature::SIGNATURE, signature::header(secret.expose(), now, &body));
        }
        let response = match call::call(post.body(body)).await {
            Ok(response) => response,
            Err(answer) => return answer,
        };
        let status = response.status();
        if !status.is_success() {
            return class(status);
        }
        // It is sent, whatever else is said.
        let id = call::body(response).await.and_then(|body| serde_json::from_slice::<Taken>(&body).ok());
        Answer::Taken(id.map(|taken| word(&taken.id)))
    }
}

/// What a status other than 2xx means.
fn class(status: StatusCode) -> Answer {
    let reason = format!("HTTP {}", status.as_u16());
    match status.as_u16() {
        429 | 503 => Answer::Passing(reason),
        401 | 403 => Answer::Unusable(reason),
        400..=499 => Answer::Refused(reason),
        // A redirect is not followed: the address of the settings is not the gateway's.
        100..=399 => Answer::Unusable(reason),
        _ => Answer::Unknown(reason),
    }
}
