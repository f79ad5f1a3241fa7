//! The channel `smtp`: codes to mailboxes, by a mail server.

use super::call::read_ca;
use super::{Answer, Carrier, Recipient, Request, Timing};
use crate::clock::Clock;
use crate::config::ChannelConfig;
use crate::text::{Lang, Text};
use anyhow::Context;
use async_trait::async_trait;
use lettre::Address;
use lettre::message::{Mailbox, Message as Mail, header::ContentType};
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail as From, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use reqwest::Url;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

pub(super) struct Smtp {
    host: String,
    port: u16,
    tls: Tls,
    credentials: Option<Credentials>,
    from: Mailbox,
    timing: Timing,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Smtp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Smtp({}:{})", self.host, self.port)
    }
}

enum Tls {
    /// From the first byte (`smtps://`).
    Whole(TlsParameters),
    /// After STARTTLS (`smtp://`), without which nothing is sent.
    Start(TlsParameters),
    /// None, to a mail server on this machine.
    Loopback,
}

impl Smtp {
    pub(super) fn new(config: &ChannelConfig, timing: Timing, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let text = config.url.as_ref().map(wire::Secret::expose).context("url` is missing")?;
        let url = Url::parse(text).ok().context("url` is no address like smtps://mail.example")?;
        let host = url.host_str().context("url` names no host")?.to_owned();
        if !url.username().is_empty() || url.password().is_some() {
            anyhow::bail!("url` holds a user name or password: they are `key_id` and `secret`");
        }
        let _ = rustls::crypto::ring::default_provider().install_default();
        let parameters = || {
            let mut tls = TlsParameters::builder(host.clone());
            if let Some(file) = &config.ca {
                let own = Certificate::from_pem(&read_ca(file)?).ok();
                let own = own.context("ca` holds a certificate that cannot be used")?;
                tls = tls.certificate_store(CertificateStore::None).add_root_certificate(own);
            }
            tls.build().ok().context("url`: TLS cannot be used; does this machine have root certificates?")
        };
        let loopback = matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]");
        let (tls, port) = match url.scheme() {
            "smtps" => (Tls::Whole(parameters()?), 465),
            "smtp" if loopback => {
                anyhow::ensure!(
                    config.ca.is_none(),
                    "ca` is for TLS, which a mail server on this machine goes without"
                );
                (Tls::Loopback, 25)
            }
            "smtp" => (Tls::Start(parameters()?), 587),
            _ => anyhow::bail!("url` must begin with smtps:// or smtp://"),
        };
        let from = config.from.as_deref().and_then(|from| from.parse::<Mailbox>().ok());
        let credentials = config.key_id.clone().zip(config.secret.clone());
        Ok(Self {
            port: url.port().unwrap_or(port),
            tls,
            credentials: credentials.map(|(user, password)| Credentials::new(user, password.expose().to_owned())),
            from: from.context("from` is no address like Museum <codes@museum.example>")?,
            timing,
            clock,
            host,
        })
    }

    /// A connection over which a message may go. Nothing has been sent as long as there is none.
    async fn connect(&self) -> Result<AsyncSmtpConnection, Error> {
        let hello = ClientId::default();
        let whole = if let Tls::Whole(tls) = &self.tls { Some(tls.clone()) } else { None };
        let host = self.host.trim_matches(['[', ']']);
        let mut connection =
            AsyncSmtpConnection::connect_tokio1((host, self.port), Some(self.timing.connect), &hello, whole, None)
                .await?;
        if let Tls::Start(tls) = &self.tls {
            connection.starttls(tls.clone(), &hello).await?;
        }
        if let Some(credentials) = &self.credentials {
            connection.auth(DEFAULT_MECHANISMS, credentials).await?;
        }
        Ok(connection)
    }

    fn mail(&self, request: &Request<'_>, to: Address) -> Option<Vec<u8>> {
        let message = request.message;
        let at = Duration::from_millis(u64::try_from(self.clock.now_ms()).unwrap_or(0));
        // Nobody knows the reader's language.
        let both = |text: Text, between: &str| format!("{}{between}{}", text.say(Lang::Zh), text.say(Lang::En));
        let text = request.template.map_or_else(|| both(Text::CodeMail, "\r\n\r\n"), str::to_owned);
        let text = text.replace("{code}", message.code.expose()).replace("{ttl}", &message.minutes());
        let id = format!("<{}@{}>", message.id, self.from.email.domain());
        let mail = Mail::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(both(Text::CodeMailSubject, " / "))
            .date(UNIX_EPOCH + at)
            .message_id(Some(id))
            .header(ContentType::TEXT_PLAIN)
            .body(text);
        Some(mail.ok()?.formatted())
    }

    /// Hands a message over. Until its text has gone out it has surely not been taken.
    async fn hand_over(&self, connection: &mut AsyncSmtpConnection, to: Address, mail: &[u8]) -> Answer {
        let from = Some(self.from.email.clone());
        if let Err(error) = connection.command(From::new(from, Vec::new())).await {
            return not_taken(&error, Answer::Unusable);
        }
        if let Err(error) = connection.command(Rcpt::new(to, Vec::new())).await {
            return not_taken(&error, Answer::Refused);
        }
        if let Err(error) = connection.command(Data).await {
            return not_taken(&error, Answer::Unusable);
        }
        match connection.message(mail).await {
            Ok(_) => Answer::Taken(None),
            Err(error) if error.status().is_none() => Answer::Unknown("the connection broke".to_owned()),
            Err(error) => not_taken(&error, Answer::Refused),
        }
    }
}

#[async_trait]
impl Carrier for Smtp {
    async fn carry(&self, request: &Request<'_>) -> Answer {
        let Recipient::Email(address) = &request.message.to else {
            return Answer::Refused("is no mail address".to_owned());
        };
        let Ok(to) = address.parse::<Address>() else { return Answer::Refused("is no mail address".to_owned()) };
        if !address.is_ascii() {
            return Answer::Refused("is a mail address that not every server knows".to_owned());
        }
        let Some(mail) = self.mail(request, to.clone()) else {
            return Answer::Unusable("the mail could not be written".to_owned());
        };
        let connected = tokio::time::timeout(self.timing.connect, self.connect()).await;
        let mut connection = match connected {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) if error.is_tls() || error.is_client() => {
                return Answer::Unusable("no encrypted connection with log-in can be made".to_owned());
            }
            Ok(Err(error)) => return not_taken(&error, Answer::Unusable),
            Err(_) => return Answer::Passing("no connection in time".to_owned()),
        };
        let left = self.timing.total.saturating_sub(self.timing.connect).max(self.timing.connect / 2);
        let handed = tokio::time::timeout(left, self.hand_over(&mut connection, to, &mail)).await;
        if let Ok(Answer::Taken(_)) = &handed {
            // Politeness; the message is theirs.
            let _ = tokio::time::timeout(self.timing.connect / 10, connection.quit()).await;
        }
        handed.unwrap_or_else(|_| Answer::Unknown("no answer in time".to_owned()))
    }
}

/// What a server's refusal means: a fourth hundred passes, a fifth is for good, and so is what has no status and passes.
fn not_taken(error: &Error, for_good: fn(String) -> Answer) -> Answer {
    let reason = error.status().map_or_else(|| "no connection".to_owned(), |code| format!("SMTP {code}"));
    match error.status().map(u16::from) {
        // Log-in wanted or refused.
        Some(530 | 534 | 535 | 538) => Answer::Unusable(reason),
        Some(500..) => for_good(reason),
        _ => Answer::Passing(reason),
    }
}
