//! `sms trace`, `doctor sms` and codes in the log of a demo, by the real binary.

use crate::binary::{Serving, command, database, open, run, text};
use api_tests::Gateway;
use api_tests::stores::{Served, start_redis, wait_until};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use sqlx::Row;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

const MOBILE: &str = "13800138000";
const CHANNELS: &str = "GUIDEPOST_SMS__CHANNELS";

/// What a command printed on standard output, and how it ended. No whole number stands in any of it.
#[track_caller]
fn told(output: &Output) -> (Option<i32>, String) {
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    for said in [out, error] {
        assert!(!said.contains(&MOBILE[2..]), "the number was printed: {said}");
    }
    (output.status.code(), format!("{out}{error}"))
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

/// A command with these settings.
fn with(folder: &Path, settings: &[(&str, String)], arguments: &[&str]) -> Command {
    let mut command = command(folder);
    command.args(arguments).envs(settings.iter().cloned());
    command
}

/// A provider that speaks as Tencent Cloud does: it takes what it is told to take, and has receipts.
#[derive(Debug)]
struct Provider {
    port: u16,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    sent: Vec<Value>,
    /// The answer to a template.
    refusals: Vec<(&'static str, &'static str)>,
    /// How many times receipts were asked for.
    asked: usize,
    /// What receipts say after the first question.
    receipt: Option<(&'static str, &'static str)>,
}

impl Provider {
    async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let inner = Arc::new(Mutex::new(Inner::default()));
        let app = axum::Router::new().fallback(answer).with_state(inner.clone());
        tokio::spawn(async { axum::serve(listener, app).await.unwrap() });
        Self { port, inner }
    }

    fn channel(&self, name: &str) -> Value {
        json!({
            "name": name, "kind": "tencent", "url": format!("http://127.0.0.1:{}/", self.port), "key_id": "AKID",
            "secret": "hunter2hunter2", "sign_name": "城市博物馆", "sdk_app_id": "1400006666",
            "templates": {
                "login": "1110", "register": "1111", "reset_password": "1112", "change_mobile": "1113", "confirm": "1114",
            },
        })
    }

    fn sent(&self) -> Vec<Value> {
        self.inner.lock().unwrap().sent.clone()
    }
}

async fn answer(State(inner): State<Arc<Mutex<Inner>>>, headers: HeaderMap, body: String) -> Json<Value> {
    let mut inner = inner.lock().unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    let response = match headers["x-tc-action"].to_str().unwrap() {
        "SendSms" => {
            inner.sent.push(body.clone());
            let template = body["TemplateId"].as_str().unwrap();
            let refused = inner.refusals.iter().find(|(refused, _)| *refused == template);
            let code = refused.map_or("Ok", |(_, code)| code);
            json!({"SendStatusSet": [{"SerialNo": format!("serial-{template}"), "Code": code, "Message": "-"}]})
        }
        "PullSmsSendStatusByPhoneNumber" => {
            inner.asked += 1;
            let all: Vec<Value> = match inner.receipt {
                Some((status, why)) if inner.asked > 1 => {
                    let one = |sent: &Value| {
                        let template = sent["TemplateId"].as_str().unwrap();
                        json!({"SerialNo": format!("serial-{template}"), "ReportStatus": status, "Description": why})
                    };
                    inner.sent.iter().map(one).collect()
                }
                _ => vec![],
            };
            json!({"PullSmsSendStatusSet": all})
        }
        _ => json!({"Error": {"Code": "FailedOperation.Other", "Message": "-"}}),
    };
    Json(json!({"Response": response}))
}

/// Settings of a server with codes in a Redis, and these channels.
fn settings(redis: &Served, channels: &Value) -> Vec<(&'static str, String)> {
    let codes = format!("redis://127.0.0.1:{}", redis.port);
    vec![("GUIDEPOST_CODE_STORE__URL", codes), (CHANNELS, channels.to_string())]
}

async fn send(serving: &Serving, scene: &str) -> Value {
    let body = json!({"mobile": MOBILE, "scene": scene});
    let post = reqwest::Client::new().post(format!("{}/api/sms/send", serving.address)).json(&body);
    post.send().await.unwrap().json().await.unwrap()
}

async fn login(serving: &Serving, code: &str) -> Value {
    let body = json!({"mobile": MOBILE, "code": code});
    let post = reqwest::Client::new().post(format!("{}/api/auth/sms-login", serving.address)).json(&body);
    post.send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_is_traced_from_request_to_phone_while_the_server_serves() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (folder, redis, provider) = (tempfile::tempdir().unwrap(), start_redis(&[]), Provider::open().await);
    let settings = settings(&redis, &json!([provider.channel("cloud")]));
    let serving = Serving::start(with(folder.path(), &settings, &["serve"]));
    let trace = |further: &[&str]| {
        let arguments = [&["sms", "trace", "--mobile", MOBILE], further].concat();
        told(&with(folder.path(), &settings, &arguments).output().unwrap())
    };

    let (code, text) = trace(&[]);
    assert_eq!(code, Some(0), "{text}");
    has(&text, &["number ***8000, tenant 1", "there is no send today", "4001, 4010", "nothing is known of any scene"]);
    has(&text, &["5. the phone", "so: no request got as far as a send"]);

    assert_eq!(send(&serving, "login").await["code"], 0);
    let sent = provider.sent()[0]["TemplateParamSet"][0].as_str().unwrap().to_owned();
    let (code, text) = trace(&[]);
    assert_eq!(code, Some(0), "{text}");
    has(&text, &["channel: 1", "login sms, from 127.0.0.1: taken by a channel, send "]);
    has(
        &text,
        &["login: a code is alive, for ", "the next send in ", "5 tries left; 1 of 5 sends in this hour, 1 of 10"],
    );
    has(&text, &["cloud: taken, the provider's id serial-1110", "cloud: the network does not say yet"]);
    has(&text, &["so: cloud has taken the message of "]);
    assert!(!text.contains(&sent), "the code was printed: {text}");

    // The provider knows more by now. That it is kept is seen when the provider is asked no more.
    provider.inner.lock().unwrap().receipt = Some(("FAIL", "EXPIRED"));
    let asked = || provider.inner.lock().unwrap().asked;
    for _ in 0..2 {
        let (code, text) = trace(&["--scene", "login"]);
        assert_eq!(code, Some(1), "{text}");
        has(
            &text,
            &[
                "cloud: not delivered: the number was switched off",
                "(EXPIRED)",
                "so: the provider says: the number was",
            ],
        );
        assert_eq!(asked(), 2, "it was asked for again");
    }

    let wrong = if sent == "000000" { "000001" } else { "000000" };
    assert_eq!(login(&serving, wrong).await["code"], 4004);
    has(&trace(&[]).1, &["4 tries left"]);
    assert_eq!(login(&serving, &sent).await["code"], 0);
    let (code, text) = trace(&[]);
    assert_eq!(code, Some(0), "{text}");
    has(&text, &["no code is alive", "was used at ", "the message did arrive"]);

    // In Chinese, and the number by standard input.
    let mut chinese = with(folder.path(), &settings, &["sms", "trace", "--mobile", "-", "--tenant", "1"]);
    let mut child = chinese.env("LC_ALL", "zh_CN.UTF-8").stdin(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{MOBILE}").unwrap();
    let (code, text) = told(&child.wait_with_output().unwrap());
    assert_eq!(code, Some(0), "{text}");
    has(&text, &["号码 ***8000", "3. 通道的答复", "cloud：已接收", "结论：", "短信收到了"]);

    redis.kill();
    let (code, text) = trace(&[]);
    assert_eq!(code, Some(1), "{text}");
    has(&text, &["the code store is away: ", "so: the code store is away", "run guidepost-server doctor"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_says_why_no_channel_took_it_and_what_cannot_be_looked_at() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (folder, provider) = (tempfile::tempdir().unwrap(), Provider::open().await);
    let settings = [(CHANNELS, json!([provider.channel("cloud")]).to_string())];
    let serving = Serving::start(with(folder.path(), &settings, &["serve"]));
    provider.inner.lock().unwrap().refusals = vec![("1110", "FailedOperation.InsufficientBalanceInSmsPackage")];
    assert_eq!(send(&serving, "login").await["code"], 4008);
    let (code, text) = told(&with(folder.path(), &settings, &["sms", "trace", "--mobile", MOBILE]).output().unwrap());
    assert_eq!(code, Some(1), "{text}");
    has(&text, &["cannot be looked at from here: codes are in the server's memory", "no channel took it"]);
    has(&text, &["cloud: there is no money", "(FailedOperation.InsufficientBalanceInSmsPackage)"]);
    has(&text, &["so: no channel took it: cloud: there is no money"]);
}

#[test]
fn a_trace_of_what_is_no_number_or_scene_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let number = ["sms", "trace", "--mobile"];
    for (arguments, said) in [
        (&["1380013800"][..], "That is no mobile number."),
        (&["-"], "That is no mobile number."),
        (&[MOBILE, "--scene", "nonsense"], "there is no scene nonsense; there are login, register"),
        (&[MOBILE, "--tenant", "9"], "there is no tenant 9"),
        (&[MOBILE, "--nonsense"], "unexpected argument"),
        (&[], "a value is required"),
    ] {
        let (code, text) = told(&run(folder.path(), &[&number, arguments].concat()));
        assert_eq!(code, Some(2), "{arguments:?}: {text}");
        has(&text, &[said]);
    }
    let (code, text) = told(&run(folder.path(), &["sms"]));
    assert_eq!(code, Some(2), "{text}");
    let mut chinese = with(folder.path(), &[], &["sms", "trace", "--mobile", "12"]);
    has(&told(&chinese.env("LANG", "zh_CN.UTF-8").output().unwrap()).1, &["手机号格式不正确"]);
    let (code, text) = told(&run(folder.path(), &["doctor", "sms", "--send-to", "+85251234567", "--yes"]));
    assert_eq!(code, Some(2), "{text}");
    has(&text, &["see sms.allowed_prefixes"]);
    // A number of another country than those that get codes is none the less a number.
    let (code, text) = told(&run(folder.path(), &["sms", "trace", "--mobile", "+85251234567"]));
    assert_eq!(code, Some(0), "{text}");
    has(&text, &["so: this number begins with none of `sms.allowed_prefixes`"]);
}

/// Scene, channel, number's end, outcome and receipt of every send in the database.
async fn rows(folder: &Path) -> Vec<String> {
    let mut connection = open(&database(folder)).await;
    let sql = "SELECT scene || ' ' || channel || ' ' || via || ' ' || last_four || ' ' || outcome || ' ' ||
        COALESCE(receipt, '-') AS row FROM sms_send ORDER BY id";
    let rows = sqlx::query(sql).fetch_all(&mut connection).await.unwrap();
    rows.iter().map(|row| row.get("row")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_channel_and_scene_is_tried_by_a_real_send_with_its_own_template() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (folder, redis) = (tempfile::tempdir().unwrap(), start_redis(&[]));
    let (provider, gateway) = (Provider::open().await, Gateway::open().await);
    provider.inner.lock().unwrap().receipt = Some(("SUCCESS", "DELIVRD"));
    let channels = json!([
        provider.channel("cloud"),
        {"name": "speaker", "kind": "http", "url": gateway.url(), "voice": true},
        {"name": "mail", "kind": "smtp", "url": "smtp://localhost", "from": "codes@museum.example"},
    ]);
    let settings = settings(&redis, &channels);
    let try_all = |further: &[&str]| {
        let arguments = [&["doctor", "sms", "--send-to", MOBILE, "--pause", "0"], further].concat();
        told(&with(folder.path(), &settings, &arguments).output().unwrap())
    };

    // Real messages cost money: nobody said that they are to go out.
    let (code, text) = try_all(&[]);
    assert_eq!(code, Some(2), "{text}");
    has(&text, &["add --yes"]);
    assert!(provider.sent().is_empty() && gateway.messages().is_empty());

    let (code, text) = try_all(&["--yes"]);
    assert_eq!(code, Some(0), "{text}");
    has(
        &text,
        &["real messages will go out to ***8000, 10 in all", "  cloud: login, register, reset_password, change_mobile"],
    );
    has(
        &text,
        &["  speaker: login", "confirm (by voice)", "mail: not tried, a channel to mailboxes needs --send-to-mail"],
    );
    has(&text, &["cloud reset_password template 1112: taken, the provider's id serial-1112", "10 taken, 0 failed"]);
    has(&text, &["receipt cloud confirm: on the phone"]);
    let templates: Vec<String> =
        provider.sent().iter().map(|sent| sent["TemplateId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(templates, ["1110", "1111", "1112", "1113", "1114"]);
    let spoken = gateway.messages();
    assert_eq!((spoken.len(), &spoken[0]["templateId"]), (5, &json!("login")));
    let rows = rows(folder.path()).await;
    assert_eq!(rows.len(), 10, "{rows:?}");
    assert_eq!(rows[0], "login cloud sms 8000 sent delivered");
    assert_eq!(rows[1], "login speaker voice 8000 sent -");

    // Good for nothing: no code came into the store.
    let keys = api_tests::stores::redis_cli(redis.port, &["keys", "sms:code:*"]);
    assert_eq!(keys.trim(), "");
    for message in spoken {
        assert!(!text.contains(message["params"]["code"].as_str().unwrap()), "a code was printed: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_refuses_is_told_with_its_class_and_what_to_do() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (folder, provider) = (tempfile::tempdir().unwrap(), Provider::open().await);
    let settings = [(CHANNELS, json!([provider.channel("cloud")]).to_string())];
    provider.inner.lock().unwrap().refusals = vec![
        ("1110", "FailedOperation.TemplateIncorrectOrUnapproved"),
        ("1111", "FailedOperation.SignatureIncorrectOrUnapproved"),
        ("1112", "InvalidParameterValue.IncorrectPhoneNumber"),
        ("1113", "LimitExceeded.PhoneNumberDailyLimit"),
    ];
    let arguments = ["doctor", "sms", "--send-to", MOBILE, "--yes", "--pause", "0"];
    let (code, text) = told(&with(folder.path(), &settings, &arguments).output().unwrap());
    assert_eq!(code, Some(1), "{text}");
    has(&text, &["failed cloud login template 1110: class B, the template is not there or not approved"]);
    has(&text, &["failed cloud register template 1111: class B, the signature is wrong or not approved"]);
    has(&text, &["failed cloud reset_password template 1112: class D, the number is wrong"]);
    has(&text, &["failed cloud change_mobile template 1113: class C, the provider's limit for this number"]);
    // After that the number is left in peace.
    has(&text, &["left   cloud confirm: the provider takes no more", "0 taken, 5 failed"]);
    assert_eq!(provider.sent().len(), 4);
    let rows = rows(folder.path()).await;
    assert_eq!(rows[3], "change_mobile cloud sms 8000 number_limit -");

    let (code, text) = told(&run(folder.path(), &["doctor", "sms", "--send-to", MOBILE, "--yes"]));
    assert_eq!(code, Some(1), "{text}");
    has(&text, &["there is no channel to try"]);
    for arguments in [
        &["doctor", "sms"][..],
        &["doctor", "sms", "--yes", "--send-to", "12"],
        &["doctor", "sms", "--yes", "--send-to-mail", "nobody"],
        &["doctor", "sms", "--yes", "--send-to", MOBILE, "--scene", "nonsense"],
    ] {
        let (code, text) = told(&run(folder.path(), arguments));
        assert_eq!(code, Some(2), "{arguments:?}: {text}");
    }
}

/// A mail server that takes one mail, and gives it.
fn mail_server() -> (u16, std::thread::JoinHandle<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        stream.write_all(b"220 mail.example\r\n").unwrap();
        let (mut mail, mut in_mail) = (String::new(), false);
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).unwrap() == 0 || line.starts_with("QUIT") {
                return mail;
            }
            let answer = match (in_mail, line.as_str()) {
                (true, ".\r\n") => {
                    in_mail = false;
                    "250 taken"
                }
                (true, line) => {
                    mail += line;
                    continue;
                }
                (false, "DATA\r\n") => {
                    in_mail = true;
                    "354 go on"
                }
                _ => "250 good",
            };
            stream.write_all(format!("{answer}\r\n").as_bytes()).unwrap();
        }
    });
    (port, serving)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_channel_is_tried_where_a_mailbox_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let (port, serving) = mail_server();
    let url = format!("smtp://127.0.0.1:{port}");
    let channels = json!([{"name": "mail", "kind": "smtp", "url": url, "from": "codes@museum.example"}]);
    let settings = [(CHANNELS, channels.to_string())];
    let arguments = ["doctor", "sms", "--send-to-mail", "li@visitor.example", "--scene", "confirm", "--yes"];
    let (code, text) = told(&with(folder.path(), &settings, &arguments).output().unwrap());
    assert_eq!(code, Some(0), "{text}");
    has(
        &text,
        &[
            "real messages will go out to ***@visitor.example, 1 in all",
            "mail confirm template (the mail's text): taken",
        ],
    );
    assert!(!text.contains("li@visitor"), "{text}");
    assert!(serving.join().unwrap().contains("To: li@visitor.example"));
    assert_eq!(rows(folder.path()).await, ["confirm mail sms visitor.example sent -"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_it_asks_before_it_sends() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (folder, gateway) = (tempfile::tempdir().unwrap(), Gateway::open().await);
    let channels = json!([{"name": "gateway", "kind": "http", "url": gateway.url()}]).to_string();
    let asked = |answer: &str| {
        let program = env!("CARGO_BIN_EXE_guidepost-server");
        let line = format!("'{program}' doctor sms --send-to {MOBILE} --scene login");
        let mut terminal = Command::new("script");
        terminal.args(["-qefc", &line, "/dev/null"]).env(CHANNELS, &channels);
        terminal.env("GUIDEPOST_DATABASE__URL", format!("sqlite://{}", database(folder.path()).display()));
        let mut child = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        writeln!(child.stdin.take().unwrap(), "{answer}").unwrap();
        told(&child.wait_with_output().unwrap())
    };
    for (answer, sent) in [("n", 0), ("", 0), ("y", 1)] {
        let (code, text) = asked(answer);
        assert_eq!((code, gateway.messages().len()), (Some(0), sent), "{answer:?}: {text}");
        has(&text, &["Send them? [y/N]"]);
        assert_eq!(text.contains("nothing was sent"), sent == 0, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_another_prefix_or_secret_key_is_named() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (folder, redis, gateway) = (tempfile::tempdir().unwrap(), start_redis(&[]), Gateway::open().await);
    let channels = json!([{"name": "gateway", "kind": "http", "url": gateway.url()}]);
    let settings = settings(&redis, &channels);
    let serving = Serving::start(with(folder.path(), &settings, &["serve"]));
    let ask = |arguments: &[&str], other: Option<(&str, &str)>| {
        told(&with(folder.path(), &settings, arguments).envs(other).output().unwrap()).1
    };
    let named = "code store  the server on ";
    assert!(!ask(&["doctor"], None).contains(named), "nothing was sent yet");
    assert_eq!(send(&serving, "login").await["code"], 0);
    has(&ask(&["doctor"], None), &["code store  prefix and secret key are those of the servers"]);
    let key = folder.path().join("other.key");
    std::fs::write(&key, [9; 32]).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let key = key.display().to_string();
    for other in [("GUIDEPOST_CODE_STORE__PREFIX", "prod:"), ("GUIDEPOST_SECRET_KEY_FILE", key.as_str())] {
        let text = ask(&["doctor"], Some(other));
        has(&text, &[named, "under another `code_store.prefix` or secret key than these settings"]);
        assert!(!text.contains("prefix and secret key are those"), "{text}");
    }
    let trace = ["sms", "trace", "--mobile", MOBILE];
    let text = ask(&trace, None);
    has(&text, &["login: a code is alive", ", by server "]);
    assert!(!text.contains("another `code_store.prefix`"), "{text}");
    let text = ask(&trace, Some(("GUIDEPOST_CODE_STORE__PREFIX", "prod:")));
    has(&text, &["has another `code_store.prefix` than these settings", "nothing is known of any scene asked about"]);
}

/// A demo with its log in a file.
fn demo(folder: &Path, log_codes: bool) -> (Serving, std::path::PathBuf) {
    let log = folder.join("log");
    let mut demo = command(folder);
    demo.args(["serve", "--demo"]);
    if log_codes {
        demo.env("GUIDEPOST_SMS__LOG_CODES", "true");
    }
    (Serving::start_logging(demo, std::fs::File::create(&log).unwrap()), log)
}

/// The line of the log about a code that would have been sent.
fn line_of(log: &Path) -> String {
    let mut found = None;
    wait_until("the log has the send", || {
        let lines = BufReader::new(std::fs::File::open(log).unwrap()).lines().map(Result::unwrap);
        found = lines.filter(|line| line.contains("would have been sent")).last();
        found.is_some()
    });
    found.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_demo_a_code_is_read_from_the_log_where_it_was_asked_for_and_not_otherwise() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let (mut serving, log) = demo(folder.path(), true);
    assert_eq!(send(&serving, "login").await["code"], 0);
    let line = line_of(&log);
    let code = line.split("code=").nth(1).unwrap().trim_matches('"');
    let code: String = code.chars().take_while(char::is_ascii_digit).collect();
    assert_eq!(code.len(), 6, "{line}");
    let signed_in = login(&serving, &code).await;
    assert_eq!((&signed_in["code"], &signed_in["data"]["roles"]), (&json!(0), &json!(["visitor"])));
    assert!(!line.contains(&MOBILE[2..]), "{line}");
    serving.terminate();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut serving.lines, &mut said).unwrap();
    has(&said, &["SMS codes: they stand whole in the log"]);

    let folder = tempfile::tempdir().unwrap();
    let (mut serving, log) = demo(folder.path(), false);
    assert_eq!(send(&serving, "login").await["code"], 0);
    let line = line_of(&log);
    assert!(!line.contains("code="), "{line}");
    // What the gates refuse leaves no row: the log alone tells of it, by the last four digits.
    assert_eq!(send(&serving, "login").await["code"], 4002);
    serving.terminate();
    let log = std::fs::read_to_string(&log).unwrap();
    let refused = log.lines().find(|line| line.contains("an SMS code was not sent")).unwrap();
    has(refused, &["scene=\"login\"", &format!("to=***{}", &MOBILE[MOBILE.len() - 4..]), "code=4002"]);
    let six = |word: &str| word.len() == 6 && word.bytes().all(|b| b.is_ascii_digit());
    // Fractions of seconds are six digits, too.
    let words = log.lines().filter_map(|line| line.split_once("Z ")).map(|(_, rest)| rest);
    for rest in words {
        assert!(!rest.split(|c: char| !c.is_ascii_alphanumeric()).any(six), "six digits in the log: {rest}");
    }
    let mut said = String::new();
    std::io::Read::read_to_string(&mut serving.lines, &mut said).unwrap();
    has(&said, &["SMS codes: ", "GUIDEPOST_SMS__LOG_CODES=true"]);
}
