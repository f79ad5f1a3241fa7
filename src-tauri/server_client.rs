//! The server over HTTP: requests with time limits, and answers sorted into "it says" and "it cannot be reached".

use crate::host_types::{Away, Locale};
use reqwest::header::{ACCEPT_LANGUAGE, HeaderValue};
use reqwest::{Method, RequestBuilder, Url};
use serde::de::DeserializeOwned;
use std::time::Duration;
use wire::accounts::{CaptchaChallenge, CaptchaRequest, SendSmsRequest, SmsLoginRequest, SmsSent, Via};
use wire::api::{ConsumeRequest, Consumed, Info, Me, SignInLinkRequest, SignedIn, TaskOrder, TaskView};
use wire::{Envelope, ErrorCode, Mobile, RequestId, Secret, SmsCode, TaskNo};

/// What the SMS codes are for that a kiosk asks for.
const SCENE: &str = "login";

/// Longer answers are none of ours.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// How long the client waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// For a connection.
    pub connect: Duration,
    /// For one try of a redemption or of a probe, so that a lost answer leaves time for a repeat.
    pub one_try: Duration,
    /// For anything else.
    pub request: Duration,
    /// For the sending of a code: the server waits for one channel and then for another, up to 15 s in all.
    pub send: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(1),
            one_try: Duration::from_secs(2),
            request: Duration::from_secs(5),
            send: Duration::from_secs(16),
        }
    }
}

/// Why there is no answer to show.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// The server says no.
    Refused(Refusal),
    /// Nobody knows what came of the request.
    Away(Away),
    /// No connection came about: the request surely never left.
    Unsent,
}

/// The server's no.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    /// Which; `None` for one that this version of the kiosk does not know.
    pub code: Option<ErrorCode>,
    /// Its words, in the language of the screen.
    pub message: String,
    /// What the contract says comes with this code.
    pub data: serde_json::Value,
}

/// On whose behalf, and in which language.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The session's token; none before somebody has signed in.
    pub token: Option<Secret>,
    /// The language of refusals.
    pub locale: Locale,
}

/// A client of one server.
#[derive(Debug, Clone)]
pub(crate) struct ServerClient {
    http: reqwest::Client,
    base: Url,
    /// Whom a request without a session is for, where the server has several tenants.
    tenant: Option<u64>,
    limits: Limits,
}

impl ServerClient {
    /// A client of the server at `address` (`http://host:port`).
    ///
    /// # Errors
    /// Where the address is none, or this machine's root certificates cannot be read.
    pub(crate) fn new(address: &str, limits: Limits) -> anyhow::Result<Self> {
        let base =
            Url::parse(address).map_err(|error| anyhow::anyhow!("{address:?} is no address of a server: {error}"))?;
        anyhow::ensure!(
            matches!(base.scheme(), "http" | "https") && base.has_host(),
            "{address:?} is no address of a server: it starts with http:// or https://"
        );
        let mut http = reqwest::Client::builder()
            .connect_timeout(limits.connect)
            .timeout(limits.request)
            // A redirect would carry the token elsewhere, and the API has none.
            .redirect(reqwest::redirect::Policy::none())
            // Repeats are made here, with the same request id; a second hand at it would spoil the time limits.
            .retry(reqwest::retry::never());
        if base.scheme() == "http" {
            // A machine without root certificates must be able to run its own server.
            http = http.tls_certs_only([]);
        }
        if is_loopback(&base) {
            http = http.no_proxy();
        }
        Ok(Self { http: http.build()?, base, tenant: None, limits })
    }

    /// The same for one tenant of that server.
    #[must_use]
    pub(crate) fn for_tenant(self, tenant: Option<u64>) -> Self {
        Self { tenant, ..self }
    }

    /// The server's host and port, as a person would say it.
    pub(crate) fn authority(&self) -> String {
        self.base.authority().to_owned()
    }

    /// The server's whole address, by which its session is told from those of others: the same host may have another
    /// server at another port or path, and without TLS it is not the same.
    pub(crate) fn address(&self) -> String {
        let tenant = self.tenant.map(|tenant| format!("?tenant={tenant}")).unwrap_or_default();
        format!("{}{}{tenant}", self.base.origin().ascii_serialization(), self.base.path().trim_end_matches('/'))
    }

    /// One try of a redemption.
    pub(crate) async fn consume(&self, caller: &Caller, request: &ConsumeRequest) -> Result<Consumed, Failure> {
        let path = ["app-api", "team", "guide-task", "booking", "consume"];
        self.call(self.request(Method::POST, &path, caller).json(request).timeout(self.limits.one_try)).await
    }

    /// The guide's tasks of today.
    pub(crate) async fn tasks(&self, caller: &Caller) -> Result<Vec<TaskView>, Failure> {
        self.call(self.request(Method::GET, &["app-api", "team", "guide-task", "list"], caller)).await
    }

    /// A task's orders.
    pub(crate) async fn task_orders(&self, caller: &Caller, task_no: &TaskNo) -> Result<Vec<TaskOrder>, Failure> {
        let path = ["app-api", "team", "guide-task", task_no.as_str(), "orders"];
        self.call(self.request(Method::GET, &path, caller)).await
    }

    /// A session for the token of a one-time link.
    pub(crate) async fn sign_in_by_link(&self, caller: &Caller, token: Secret) -> Result<SignedIn, Failure> {
        let body = SignInLinkRequest { token };
        self.call(self.request(Method::POST, &["api", "auth", "sign-in-link"], caller).json(&body)).await
    }

    /// Has a code for signing in sent to a number.
    pub(crate) async fn send_sms(
        &self,
        caller: &Caller,
        mobile: &Mobile,
        captcha_token: Option<Secret>,
        via: Option<Via>,
    ) -> Result<SmsSent, Failure> {
        let mobile = Some(Secret::new(mobile.expose()));
        let body = SendSmsRequest { mobile, scene: SCENE.to_owned(), captcha_token, via };
        let request = self.request(Method::POST, &["api", "sms", "send"], caller).timeout(self.limits.send);
        self.call(request.json(&body)).await
    }

    /// A captcha for the sending of a code to a number.
    pub(crate) async fn captcha(&self, caller: &Caller, mobile: &Mobile) -> Result<CaptchaChallenge, Failure> {
        let body = CaptchaRequest { mobile: Some(Secret::new(mobile.expose())), scene: SCENE.to_owned() };
        self.call(self.request(Method::POST, &["api", "captcha"], caller).json(&body)).await
    }

    /// A session for a code that was sent to a number; the same `request_id` again takes up an answer that was lost.
    pub(crate) async fn sms_login(
        &self,
        caller: &Caller,
        mobile: &Mobile,
        code: &SmsCode,
        request_id: &RequestId,
    ) -> Result<SignedIn, Failure> {
        let body = SmsLoginRequest {
            mobile: Secret::new(mobile.expose()),
            code: Secret::new(code.expose()),
            request_id: Some(request_id.as_str().to_owned()),
        };
        self.call(self.request(Method::POST, &["api", "auth", "sms-login"], caller).json(&body)).await
    }

    /// Who the caller is.
    pub(crate) async fn me(&self, caller: &Caller) -> Result<Me, Failure> {
        self.call(self.request(Method::GET, &["api", "auth", "me"], caller).timeout(self.limits.one_try)).await
    }

    /// Ends the caller's session.
    pub(crate) async fn sign_out(&self, caller: &Caller) -> Result<(), Failure> {
        let request = self.request(Method::POST, &["api", "auth", "logout"], caller);
        self.call_for_nothing(request).await
    }

    /// What the server says of itself.
    pub(crate) async fn info(&self, caller: &Caller) -> Result<Info, Failure> {
        self.call(self.request(Method::GET, &["api", "info"], caller).timeout(self.limits.one_try)).await
    }

    /// `None`: the server can do its work. Otherwise what is away.
    pub(crate) async fn probe(&self) -> Option<Away> {
        let ask = |path| {
            let url = self.url(&[path]);
            self.http.get(url).timeout(self.limits.one_try).send()
        };
        match ask("readyz").await {
            // Its own word: a hotel's log-in page says 200 to everything.
            Ok(answer) if answer.status().is_success() => match answer.text().await {
                Ok(word) if word.trim() == "ready" => None,
                _ => Some(Away::Server),
            },
            // It names the one of its two stores that does not answer.
            Ok(answer) => Some(match answer.text().await {
                Ok(what) if what.trim() == "code store" => Away::CodeService,
                _ => Away::Server,
            }),
            // A database that hangs holds readyz up, never healthz.
            Err(_) => Some(if ask("healthz").await.is_ok() { Away::Server } else { Away::Network }),
        }
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        // An http address always has a path that can be extended.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    fn request(&self, method: Method, path: &[&str], caller: &Caller) -> RequestBuilder {
        let language = match caller.locale {
            Locale::ZhCn => "zh-CN",
            Locale::En => "en",
        };
        let request =
            self.http.request(method, self.url(path)).header(ACCEPT_LANGUAGE, HeaderValue::from_static(language));
        match &caller.token {
            Some(token) => request.bearer_auth(token.expose()),
            None => match self.tenant {
                Some(tenant) => request.header("tenant-id", tenant),
                None => request,
            },
        }
    }

    async fn call<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Failure> {
        let data = self.envelope(request).await?;
        serde_json::from_value(data).map_err(|error| {
            // The words of serde's errors may hold a value of the answer; its place is enough.
            tracing::error!(category = ?error.classify(), "the server's answer is not what the contract says");
            Failure::Away(Away::Server)
        })
    }

    async fn call_for_nothing(&self, request: RequestBuilder) -> Result<(), Failure> {
        self.envelope(request).await.map(drop)
    }

    async fn envelope(&self, request: RequestBuilder) -> Result<serde_json::Value, Failure> {
        let lost = |error: reqwest::Error| {
            tracing::debug!(
                connect = error.is_connect(),
                timeout = error.is_timeout(),
                path = error.url().map(Url::path),
                "no answer"
            );
            if error.is_connect() { Failure::Unsent } else { Failure::Away(Away::Network) }
        };
        let mut answer = request.send().await.map_err(lost)?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(lost)? {
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(Failure::Away(Away::Server));
            }
            body.extend_from_slice(&chunk);
        }
        let status = answer.status();
        let Ok(envelope) = serde_json::from_slice::<Envelope<serde_json::Value>>(&body) else {
            // A gateway in front of the server, or something else at its address.
            tracing::warn!(%status, "an answer that is not the server's");
            return Err(Failure::Away(Away::Server));
        };
        let data = envelope.data.unwrap_or_default();
        if envelope.code == 0 {
            return Ok(data);
        }
        Err(match ErrorCode::from_code(envelope.code) {
            Some(ErrorCode::VerifyCodeUnavailable) => Failure::Away(Away::CodeService),
            Some(ErrorCode::Unavailable | ErrorCode::Internal) => Failure::Away(Away::Server),
            None if status.is_server_error() => Failure::Away(Away::Server),
            code => Failure::Refused(Refusal { code, message: envelope.msg, data }),
        })
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str().map(|host| host.trim_start_matches('[').trim_end_matches(']')) {
        Some("localhost") => true,
        Some(host) => host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Desk};

    #[test]
    fn an_address_that_is_none_is_refused_in_words() {
        for address in ["", "kiosk", "ftp://example.org", "http://", "file:///etc"] {
            let error = ServerClient::new(address, Limits::default()).unwrap_err().to_string();
            assert!(error.contains("is no address of a server"), "{error}");
        }
    }

    #[test]
    fn paths_are_put_behind_the_address_and_cannot_leave_it() {
        testing::tls();
        for (address, url) in [
            ("http://127.0.0.1:1", "http://127.0.0.1:1/api/a%2F..%2Fb"),
            ("http://127.0.0.1:1/sub/", "http://127.0.0.1:1/sub/api/a%2F..%2Fb"),
        ] {
            let client = ServerClient::new(address, Limits::default()).unwrap();
            assert_eq!(client.url(&["api", "a/../b"]).as_str(), url);
        }
    }

    #[test]
    fn a_server_is_told_from_others_by_its_whole_address() {
        testing::tls();
        for (address, as_kept) in [
            ("https://desk.example", "https://desk.example"),
            ("https://DESK.example:443/", "https://desk.example"),
            ("http://desk.example", "http://desk.example"),
            ("http://desk.example:8080/east/", "http://desk.example:8080/east"),
            ("http://user:secret@desk.example", "http://desk.example"),
        ] {
            assert_eq!(ServerClient::new(address, Limits::default()).unwrap().address(), as_kept);
        }
        let client = ServerClient::new("https://desk.example", Limits::default()).unwrap().for_tenant(Some(2));
        assert_eq!(client.address(), "https://desk.example?tenant=2");
        let header = |token| {
            let caller = Caller { token, locale: Locale::ZhCn };
            let request = client.request(Method::GET, &["api", "info"], &caller).build().unwrap();
            request.headers().get("tenant-id").map(|id| id.to_str().unwrap().to_owned())
        };
        assert_eq!(header(None).as_deref(), Some("2"));
        assert_eq!(header(Some(Secret::new("T"))), None, "a session has its tenant");
    }

    #[test]
    fn this_machine_needs_no_proxy() {
        for (address, is) in [
            ("http://127.0.0.1:1", true),
            ("http://localhost", true),
            ("http://[::1]:2", true),
            ("http://10.0.0.1", false),
            ("http://desk.example", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(address).unwrap()), is, "{address}");
        }
    }

    #[tokio::test]
    async fn a_probe_tells_network_from_server() {
        let desk = Desk::open().await;
        desk.server.set_unready("");
        assert_eq!(desk.client.probe().await, None);
        desk.server.set_unready("database");
        assert_eq!(desk.client.probe().await, Some(Away::Server));
        desk.server.set_unready("code store");
        assert_eq!(desk.client.probe().await, Some(Away::CodeService));
        let nobody = ServerClient::new(&testing::unused_address().await, testing::LIMITS).unwrap();
        assert_eq!(nobody.probe().await, Some(Away::Network));
    }

    #[tokio::test]
    async fn an_answer_that_is_not_the_servers_is_no_answer() {
        let desk = Desk::open().await;
        for (status, body) in [(200, "<html>log in to the hotel's network</html>"), (502, "bad gateway"), (200, "")] {
            desk.server.answer_with(status, body);
            let answer = desk.client.tasks(&desk.caller()).await;
            assert_eq!(answer, Err(Failure::Away(Away::Server)), "{status} {body}");
        }
    }
}
