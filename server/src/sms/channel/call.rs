//! Calls over HTTP to gateways and providers, and what their ends mean.

use super::{Answer, Timing};
use crate::ca;
use crate::config::ChannelConfig;
use anyhow::Context;
use reqwest::{Certificate, Client, RequestBuilder, Response, StatusCode, Url};
use std::path::Path;

/// More of an answer is not read (bytes).
const LONGEST: usize = 64 * 1024;

/// The address of a channel. It may lie inside the house's own network: the settings file is the admin's.
pub(super) fn address(config: &ChannelConfig, usual: Option<&str>) -> anyhow::Result<Url> {
    let text = config.url.as_ref().map(wire::Secret::expose).or(usual).context("url` is missing")?;
    let url = Url::parse(text).ok().context("url` is no web address")?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        anyhow::bail!("url` must begin with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        anyhow::bail!("url` holds a user name or password: what is sent is signed with `secret`, leave them out");
    }
    Ok(url)
}

/// A client that sends once and follows nothing.
///
/// `ca` is a PEM file of the CA that is trusted instead of the public ones.
pub(super) fn client(url: &Url, timing: Timing, ca: Option<&Path>) -> anyhow::Result<Client> {
    // Commands other than `serve` open the channels, too; whoever has chosen a provider before keeps theirs.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = Client::builder()
        .user_agent(concat!("guidepost/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(timing.connect)
        .timeout(timing.total)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .retry(reqwest::retry::never())
        // On a connection that idled a message can get lost, and would count as sent.
        .pool_max_idle_per_host(0);
    if url.scheme() == "http" {
        // A machine without root certificates must be able to reach it.
        client = client.tls_certs_only([]);
    } else if let Some(file) = ca {
        client = client.tls_certs_only(Certificate::from_pem_bundle(&read_ca(file)?).context(NO_CA)?);
    }
    client.build().context("url`: TLS cannot be used; does this machine have root certificates?")
}

const NO_CA: &str = "ca` holds a certificate that cannot be used";

/// The PEM text of a channel's own CA.
pub(super) fn read_ca(file: &Path) -> anyhow::Result<Vec<u8>> {
    ca::read(file).map_err(|reason| anyhow::anyhow!("ca`: {reason}"))
}

/// Sends a request; where there is no answer, what that means.
pub(super) async fn call(request: RequestBuilder) -> Result<Response, Answer> {
    request.send().await.map_err(|error| no_answer(&error))
}

/// In words of ours: a library's own may hold the address, and with it a secret.
fn no_answer(error: &reqwest::Error) -> Answer {
    if error.is_connect() {
        // Nothing has been written.
        Answer::Passing("no connection".to_owned())
    } else if error.is_timeout() {
        Answer::Unknown("no answer in time".to_owned())
    } else {
        Answer::Unknown("the connection broke".to_owned())
    }
}

/// The whole body, where it comes in time and is not too long.
pub(super) async fn body(mut response: Response) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > LONGEST {
            return None;
        }
    }
    Some(body)
}

/// What an answer means that says nothing but its status.
pub(super) fn bare(status: StatusCode) -> Answer {
    let reason = format!("HTTP {}", status.as_u16());
    match status.as_u16() {
        429 => Answer::Passing(reason),
        300..=499 => Answer::Unusable(reason),
        _ => Answer::Unknown(reason),
    }
}

/// The header `Host`, which is signed.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
