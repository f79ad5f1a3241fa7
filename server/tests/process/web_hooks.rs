//! The real binary, killed between a redemption's commit and its delivery: told after the next start.

use crate::binary::Serving;
use api_tests::receiver::{Receiver, Reply, SECRET};
use api_tests::stores::{Served, start_mariadb, start_redis};
use guidepost_server::config::DatabaseUrl;
use serde_json::{Value, json};
use sqlx::{AnyConnection, Connection};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A server's settings and its parts.
struct Parts {
    environment: Vec<(&'static str, String)>,
    redis: Served,
    _mariadb: Option<Served>,
    _folder: tempfile::TempDir,
}

impl Parts {
    async fn make(mariadb: bool, receiver: &Receiver) -> Self {
        sqlx::any::install_default_drivers();
        let folder = tempfile::tempdir().unwrap();
        let redis = start_redis(&[]);
        let mariadb = mariadb.then(start_mariadb);
        let database = match &mariadb {
            None => DatabaseUrl::sqlite(&folder.path().join("guidepost.db")).expose().to_owned(),
            Some(server) => {
                let root = format!("mysql://root@127.0.0.1:{}", server.port);
                let mut connection = AnyConnection::connect(&format!("{root}/mysql")).await.unwrap();
                sqlx::query("CREATE DATABASE venue").execute(&mut connection).await.unwrap();
                format!("{root}/venue")
            }
        };
        let hooks = json!([{
            "name": "booking", "url": format!("http://127.0.0.1:{}/hook", receiver.port), "secret": SECRET,
            "timeout": 1, "allow_private": true,
        }]);
        let key = folder.path().join("secret.key");
        std::fs::write(&key, [7; 32]).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let environment = vec![
            ("GUIDEPOST_LISTEN", "127.0.0.1:0".to_owned()),
            ("GUIDEPOST_DATABASE__URL", database),
            ("GUIDEPOST_CODE_STORE__URL", format!("redis://127.0.0.1:{}", redis.port)),
            ("GUIDEPOST_CODE_STORE__TIMEOUT_MS", "10000".to_owned()),
            ("GUIDEPOST_WEB_HOOKS", hooks.to_string()),
            ("GUIDEPOST_SECRET_KEY_FILE", key.display().to_string()),
        ];
        Self { environment, redis, _mariadb: mariadb, _folder: folder }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_guidepost-server"));
        command.args(arguments).envs(self.environment.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self.command(arguments).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        output
    }

    fn serve(&self) -> Serving {
        Serving::start(self.command(&["serve"]))
    }
}

async fn killed_between_commit_and_delivery(mariadb: bool) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let receiver = Receiver::open().await;
    receiver.answer([Reply::Hold]);
    let parts = Parts::make(mariadb, &receiver).await;
    parts.run(&["admin", "add", "--username", "boss", "--password-stdin"], "correct horse\n");
    let key = parts.run(&["api-key", "add", "--name", "booking"], "");
    let key = String::from_utf8(key.stdout).unwrap().trim().to_owned();

    let mut serving = parts.serve();
    let http = reqwest::Client::new();
    let send = async |request: reqwest::RequestBuilder| {
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["code"], 0, "{answer}");
        answer["data"].clone()
    };
    let login = json!({"username": "boss", "password": "correct horse"});
    let session = send(http.post(format!("{}/api/auth/login", serving.address)).json(&login)).await;
    let order = json!({"mobile": "13800000001", "visitorName": "张伟", "partySize": 4, "visitAt": 0, "status": "paid"});
    let put = http.put(format!("{}/open-api/orders/BK1", serving.address)).header("x-api-key", &key);
    send(put.json(&order)).await;
    let client = redis::Client::open(format!("redis://127.0.0.1:{}", parts.redis.port)).unwrap();
    let mut codes = client.get_multiplexed_async_connection().await.unwrap();
    let mut set = redis::cmd("SET");
    set.arg("team:booking:verify:1:order:1").arg("483921").arg("EX").arg(60);
    let () = set.query_async(&mut codes).await.unwrap();
    let consume = json!({"orderNo": "BK1", "verifyCode": "483921", "requestId": "r-1"});
    let path = format!("{}/admin-api/team/booking-order/booking/consume", serving.address);
    send(http.post(path).bearer_auth(session["token"].as_str().unwrap()).json(&consume)).await;
    // The redemption is answered; whatever the sender has done by now, it knows of no delivery.
    serving.kill();

    let _again = parts.serve();
    let started = Instant::now();
    let delivered = async || {
        let mut database = AnyConnection::connect(&parts.environment[1].1).await.unwrap();
        let done = "SELECT COUNT(*) FROM web_hook_delivery WHERE done_at IS NOT NULL AND given_up = 0";
        sqlx::query_scalar::<_, i64>(done).fetch_one(&mut database).await.unwrap()
    };
    receiver.let_go();
    while delivered().await == 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "it was never told");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let received = receiver.received();
    assert!(received.iter().all(|one| *one == received[0]), "a repeat differs: {received:?}");
    assert_eq!((&received[0].body["orderNo"], &received[0].body["requestId"]), (&json!("BK1"), &json!("r-1")));
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_commit_and_delivery_it_is_told_after_the_next_start_sqlite() {
    killed_between_commit_and_delivery(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_commit_and_delivery_it_is_told_after_the_next_start_mariadb() {
    killed_between_commit_and_delivery(true).await;
}
