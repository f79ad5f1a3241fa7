//! Codes to mailboxes, against a mail server of our own.

use super::{CODE, Desk, QUICK, message, parts, settings};
use crate::config::Config;
use crate::sms::channel::{Channels, Message, Outcome, Recipient, Report};
use api_tests::authority::Authority;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;
use std::io::{BufRead, Read, Write};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

/// Answers the command that begins so in this way; an empty answer cuts the line.
type Odd = (&'static str, &'static str);

struct MailServer {
    port: u16,
    mails: Arc<Mutex<Vec<String>>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for MailServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl MailServer {
    async fn open(odd: Option<Odd>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mails = Arc::new(Mutex::new(Vec::new()));
        let kept = mails.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = kept.clone();
                tokio::spawn(async move {
                    let _ = talk(stream, odd, kept).await;
                });
            }
        });
        Self { port, mails, serving }
    }

    async fn desk(&self) -> Desk {
        let url = format!("smtp://127.0.0.1:{}", self.port);
        Desk::open(&json!([{"name": "mail", "kind": "smtp", "url": url, "from": "城市博物馆 <codes@museum.example>"}]))
            .await
    }

    fn mails(&self) -> Vec<String> {
        self.mails.lock().unwrap().clone()
    }
}

async fn talk(stream: tokio::net::TcpStream, odd: Option<Odd>, kept: Arc<Mutex<Vec<String>>>) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 mail.example\r\n").await?;
    while let Some(line) = lines.next_line().await? {
        let answer = match odd {
            Some((command, answer)) if line.starts_with(command) => answer,
            _ if line.starts_with("EHLO") => "250 mail.example",
            _ if line.starts_with("DATA") => "354 go on",
            _ => "250 good",
        };
        if answer.is_empty() {
            return Ok(());
        }
        write.write_all(format!("{answer}\r\n").as_bytes()).await?;
        if line.starts_with("DATA") && answer.starts_with("354") {
            let mut mail = String::new();
            while let Some(line) = lines.next_line().await? {
                if line == "." {
                    break;
                }
                mail += &format!("{line}\n");
            }
            kept.lock().unwrap().push(mail);
            match odd {
                Some((".", "")) => return Ok(()),
                Some((".", answer)) => write.write_all(format!("{answer}\r\n").as_bytes()).await?,
                _ => write.write_all(b"250 taken\r\n").await?,
            }
        }
    }
    Ok(())
}

async fn mail(desk: &Desk, to: &str) -> Report {
    desk.channels.send(&Message { to: Recipient::Email(to.to_owned()), ..message() }).await
}

#[tokio::test]
async fn a_code_goes_to_a_mailbox_and_to_no_phone() {
    let server = MailServer::open(None).await;
    let desk = server.desk().await;
    assert_eq!(desk.send().await.outcome, Outcome::NotTaken, "a number is nothing for a mail server");
    assert_eq!(mail(&desk, "li@visitor.example").await.outcome, Outcome::Sent);
    let mails = server.mails();
    assert_eq!(mails.len(), 1);
    for line in
        ["To: li@visitor.example", "Message-ID: <send-1@museum.example>", "Date: Sat, 01 Aug 2026 01:00:00 +0000"]
    {
        assert!(mails[0].contains(line), "{line}: {}", mails[0]);
    }
    // The text is in two languages and therefore encoded.
    let encoded: String = mails[0].split("\n\n").nth(1).unwrap().replace(['\n', '='], "");
    assert!(mails[0].contains("quoted-printable") || mails[0].contains("base64"), "{}", mails[0]);
    if mails[0].contains("base64") {
        let text = base64::engine::general_purpose::STANDARD_NO_PAD.decode(encoded).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains(&format!("您的验证码是 {CODE}，5 分钟内有效")) && text.contains("Tell it to nobody"),
            "{text}"
        );
    } else {
        assert!(encoded.contains(CODE), "{encoded}");
    }
}

#[tokio::test]
async fn each_refusal_of_a_mail_server_is_dealt_with_by_its_class() {
    for (odd, outcome, mails) in [
        (("MAIL", "451 later"), Outcome::NotTaken, 0),
        (("MAIL", "550 you may not"), Outcome::NotTaken, 0),
        (("RCPT", "450 later"), Outcome::NotTaken, 0),
        (("RCPT", "550 no such mailbox"), Outcome::Refused, 0),
        // Before the text has gone out a broken line is no unknown end.
        (("RCPT", ""), Outcome::NotTaken, 0),
        ((".", "554 spam"), Outcome::Refused, 1),
        ((".", "451 later"), Outcome::NotTaken, 2),
        ((".", ""), Outcome::Unknown, 1),
    ] {
        let server = MailServer::open(Some(odd)).await;
        let report = mail(&server.desk().await, "li@visitor.example").await;
        assert_eq!((report.outcome, server.mails().len()), (outcome, mails), "{odd:?}: {report:?}");
    }
}

#[tokio::test]
async fn what_is_no_mail_address_is_refused_and_puts_nothing_into_the_head() {
    let server = MailServer::open(None).await;
    let desk = server.desk().await;
    for address in
        ["", "li", "li@", "a@b.example\r\nBcc: c@d.example", "a@b.example, c@d.example", "李@visitor.example"]
    {
        assert_eq!(mail(&desk, address).await.outcome, Outcome::Refused, "{address:?}");
    }
    assert!(server.mails().is_empty());
}

const USER: &str = "codes@museum.example";
const PASSWORD: &str = "hunter2 hunter2";

/// How a mail server speaks TLS.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaks {
    /// From the first byte.
    Whole,
    /// After STARTTLS, and nothing but that before it.
    Start,
    /// Never, whatever it is asked.
    Never,
}

/// A mail server behind TLS that wants a log-in. It listens where no loopback rule of the channel holds.
struct SafeMailServer {
    port: u16,
    mails: Arc<Mutex<Vec<String>>>,
    /// What came before there was TLS.
    in_clear: Arc<Mutex<Vec<String>>>,
}

impl SafeMailServer {
    fn open(authority: &Authority, speaks: Speaks) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let chain = CertificateDer::pem_file_iter(authority.file("leaf.pem")).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(authority.file("leaf.key")).unwrap();
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.2:0").unwrap();
        let server =
            Self { port: listener.local_addr().unwrap().port(), mails: Arc::default(), in_clear: Arc::default() };
        let (config, mails, in_clear) = (Arc::new(config), server.mails.clone(), server.in_clear.clone());
        // Ends with the process; it holds nothing but its port.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, mails, in_clear) = (config.clone(), mails.clone(), in_clear.clone());
                std::thread::spawn(move || {
                    let _ = greet(stream, config, speaks, &mails, &in_clear);
                });
            }
        });
        server
    }

    async fn send(&self, scheme: &str, further: serde_json::Value) -> Report {
        let mut channel = json!({
            "name": "mail", "kind": "smtp", "url": format!("{scheme}://127.0.0.2:{}", self.port),
            "from": "codes@museum.example", "key_id": USER, "secret": PASSWORD,
        });
        channel.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
        mail(&Desk::open(&json!([channel])).await, "li@visitor.example").await
    }
}

/// The part before TLS.
fn greet(
    mut stream: std::net::TcpStream,
    config: Arc<ServerConfig>,
    speaks: Speaks,
    mails: &Mutex<Vec<String>>,
    in_clear: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    if speaks != Speaks::Whole {
        stream.write_all(b"220 mail.example\r\n")?;
        loop {
            let mut line = String::new();
            // Byte by byte, so that nothing of what follows STARTTLS is taken.
            while !line.ends_with('\n') {
                let mut byte = [0];
                stream.read_exact(&mut byte)?;
                line.push(char::from(byte[0]));
            }
            in_clear.lock().unwrap().push(line.trim().to_owned());
            match (line.trim(), speaks) {
                ("STARTTLS", Speaks::Start) => break,
                ("STARTTLS", _) => stream.write_all(b"502 not here\r\n")?,
                (hello, Speaks::Start) if hello.starts_with("EHLO") => {
                    stream.write_all(b"250-mail.example\r\n250 STARTTLS\r\n")?;
                }
                // It would take a log-in from whoever gives it.
                (hello, _) if hello.starts_with("EHLO") => {
                    stream.write_all(b"250-mail.example\r\n250 AUTH PLAIN\r\n")?;
                }
                (login, _) if login.starts_with("AUTH") => stream.write_all(b"235 welcome\r\n")?,
                _ => stream.write_all(b"250 mail.example\r\n")?,
            }
        }
        stream.write_all(b"220 go on\r\n")?;
    }
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut lines = std::io::BufReader::new(StreamOwned::new(connection, stream));
    if speaks == Speaks::Whole {
        lines.get_mut().write_all(b"220 mail.example\r\n")?;
    }
    let mut known = false;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim();
        let plain = line.strip_prefix("AUTH PLAIN ").map(|text| STANDARD.decode(text).unwrap());
        let answer = match plain {
            Some(plain) if plain == format!("\0{USER}\0{PASSWORD}").into_bytes() => {
                known = true;
                "235 welcome"
            }
            Some(_) => "535 who are you",
            None if line.starts_with("EHLO") => "250-mail.example\r\n250 AUTH PLAIN",
            None if line.starts_with("QUIT") => "221 bye",
            None if !known => "530 log in first",
            None if line.starts_with("DATA") => "354 go on",
            None => "250 good",
        };
        lines.get_mut().write_all(format!("{answer}\r\n").as_bytes())?;
        if answer.starts_with("354") {
            let mut mail = String::new();
            while !mail.ends_with("\r\n.\r\n") {
                lines.read_line(&mut mail)?;
            }
            mails.lock().unwrap().push(mail);
            lines.get_mut().write_all(b"250 taken\r\n")?;
        }
    }
}

#[tokio::test]
async fn a_mail_goes_over_tls_with_a_log_in_and_nothing_of_it_in_the_clear() {
    let authority = Authority::make("IP:127.0.0.2");
    let ca = json!({"ca": authority.ca()});
    for (speaks, scheme) in [(Speaks::Whole, "smtps"), (Speaks::Start, "smtp")] {
        let server = SafeMailServer::open(&authority, speaks);
        let report = server.send(scheme, ca.clone()).await;
        assert_eq!(report.outcome, Outcome::Sent, "{scheme}: {report:?}");
        assert!(server.mails.lock().unwrap()[0].contains("To: li@visitor.example"));
        let in_clear = server.in_clear.lock().unwrap().clone();
        assert!(in_clear.iter().all(|line| line.starts_with("EHLO") || line == "STARTTLS"), "{in_clear:?}");

        let mut wrong = ca.clone();
        wrong["secret"] = json!("another password");
        let report = server.send(scheme, wrong).await;
        assert_eq!((report.outcome, report.reason.as_str()), (Outcome::NotTaken, "mail: SMTP 535"), "{scheme}");
        assert_eq!(server.mails.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_mail_server_that_is_not_trusted_or_speaks_no_tls_gets_neither_password_nor_code() {
    let authority = Authority::make("IP:127.0.0.2");
    let (stranger, other_host) = (Authority::make("IP:127.0.0.2"), Authority::make("DNS:mail.museum.example"));
    let not_encrypted = "mail: no encrypted connection with log-in can be made";
    for (speaks, scheme) in [(Speaks::Whole, "smtps"), (Speaks::Start, "smtp")] {
        for (serves, trusts) in [
            (&authority, json!({"ca": stranger.ca()})),
            // The public CAs have not signed it.
            (&authority, json!({})),
            (&other_host, json!({"ca": other_host.ca()})),
        ] {
            let server = SafeMailServer::open(serves, speaks);
            let report = server.send(scheme, trusts.clone()).await;
            assert_eq!(report.outcome, Outcome::NotTaken, "{scheme} {trusts}: {report:?}");
            assert!(server.mails.lock().unwrap().is_empty(), "{scheme} {trusts}");
        }
    }
    let server = SafeMailServer::open(&authority, Speaks::Never);
    let report = server.send("smtp", json!({"ca": authority.ca()})).await;
    let in_clear = server.in_clear.lock().unwrap().join(", ");
    assert!(!in_clear.contains("AUTH") && !in_clear.contains("MAIL"), "said in the clear: {in_clear}");
    assert_eq!((report.outcome, report.reason.as_str()), (Outcome::NotTaken, not_encrypted));
}

#[tokio::test]
async fn a_gateway_behind_a_ca_of_the_house_is_trusted_by_that_ca_alone() {
    let authority = Authority::make("IP:127.0.0.2");
    let stranger = Authority::make("IP:127.0.0.2");
    for (ca, outcome) in [(authority.ca(), Outcome::Sent), (stranger.ca(), Outcome::NotTaken)] {
        let port = https_gateway(&authority);
        let url = format!("https://127.0.0.2:{port}/sms");
        let desk = Desk::open(&json!([{"name": "house", "kind": "http", "url": url, "ca": ca}])).await;
        let report = desk.send().await;
        assert_eq!(report.outcome, outcome, "{report:?}");
    }
}

/// Takes whatever is posted to it over TLS.
fn https_gateway(authority: &Authority) -> u16 {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let chain = CertificateDer::pem_file_iter(authority.file("leaf.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(authority.file("leaf.key")).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.2:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            let mut request = Vec::new();
            let mut some = [0; 1024];
            // The body is an object whose last value is a text.
            while !request.ends_with(b"\"}") {
                match stream.read(&mut some) {
                    Ok(n @ 1..) => request.extend_from_slice(&some[..n]),
                    _ => break,
                }
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    port
}

#[tokio::test]
async fn a_ca_that_cannot_be_used_or_has_no_meaning_is_named_at_start() {
    let authority = Authority::make("IP:127.0.0.2");
    let ca = authority.ca();
    for (url, file, reason) in [
        ("smtps://mail.example", "/nowhere.pem".into(), "setting `sms.channels[0].ca`: /nowhere.pem cannot be read"),
        ("smtps://mail.example", authority.file("leaf.key").into(), "holds no certificate"),
        ("smtp://localhost", ca, "setting `sms.channels[0].ca` is for TLS"),
    ] {
        let file: std::path::PathBuf = file;
        let channels = json!([{"name": "mail", "kind": "smtp", "url": url, "from": "a@b.example", "ca": file}]);
        let desk = Desk::open(&json!([])).await;
        let made = Channels::with_timing(&settings(&channels), false, parts(&desk.app), QUICK);
        let error = format!("{:#}", made.unwrap_err());
        assert!(error.contains(reason), "{error}");
    }
    let channels = json!([{"name": "house", "kind": "http", "url": "http://10.0.0.7/sms", "ca": authority.ca()}]);
    let loaded = Config::load(None, [("GUIDEPOST_SMS__CHANNELS".to_owned(), channels.to_string())]);
    assert!(loaded.unwrap_err().to_string().contains("`sms.channels[0].ca`"));
}
