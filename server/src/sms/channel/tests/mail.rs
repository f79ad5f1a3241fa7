//! Codes to mailboxes, against a mail server of our own.

use super::{CODE, Desk, message};
use crate::sms::channel::{Message, Outcome, Recipient, Report};
use serde_json::json;
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
        use base64::Engine;
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
