//! Redis behind TLS: its certificate must come from the CA that the settings name, and nothing is redeemed otherwise.

use api_tests::authority::Authority;
use api_tests::stores::{Served, free_port, start_redis_at, wait_until};
use api_tests::{Order, ServerProcess, Stores, Venue};
use guidepost_server::Config;
use guidepost_server::config::DatabaseUrl;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a CA does for a Redis.
trait RedisBehindTls {
    fn arguments(&self, port: u16) -> Vec<String>;
    fn start_redis(&self, more: &[&str]) -> Served;
    fn redis_cli(&self, arguments: &[&str]) -> String;
}

impl RedisBehindTls for Authority {
    /// What a Redis needs to speak TLS, and nothing else, on this port.
    fn arguments(&self, port: u16) -> Vec<String> {
        let port = port.to_string();
        let (pem, key, ca) = (self.file("leaf.pem"), self.file("leaf.key"), self.file("ca.pem"));
        let settings = [
            ("--port", "0"),
            ("--tls-port", &port),
            ("--tls-cert-file", &pem),
            ("--tls-key-file", &key),
            ("--tls-ca-cert-file", &ca),
            ("--tls-auth-clients", "no"),
            ("--tls-replication", "yes"),
        ];
        settings.iter().flat_map(|(name, value)| [(*name).to_owned(), (*value).to_owned()]).collect()
    }

    /// Starts a Redis that speaks TLS alone.
    fn start_redis(&self, more: &[&str]) -> Served {
        let port = free_port();
        let arguments = self.arguments(port);
        let all: Vec<&str> = arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
        start_redis_at(port, &all)
    }

    /// What a Redis answers over TLS.
    fn redis_cli(&self, arguments: &[&str]) -> String {
        let output =
            Command::new("redis-cli").args(["--tls", "--cacert"]).arg(self.ca()).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).replace('\r', "")
    }
}

/// A venue on a code store behind TLS, and whom it trusts.
async fn venue_on(url: String, ca: Option<PathBuf>) -> Venue {
    Venue::open_with(Stores::SqliteRedis, |config| {
        config.code_store.url = DatabaseUrl::new(url);
        config.code_store.ca = ca;
        // The same keys in every run, and so the same nodes.
        config.code_store.prefix.clear();
    })
    .await
}

async fn redeems(venue: &Venue) {
    let guide = venue.guide().await;
    for n in 0..8 {
        let order_no = format!("BK{n}");
        let code = venue.paid_order_with_code(&order_no).await;
        guide.redeem(&order_no, if code == "100000" { "100001" } else { "100000" }).await.refused(422, 2003);
        guide.redeem(&order_no, &code).await.ok();
        guide.redeem(&order_no, &code).await.refused(409, 2002);
    }
}

async fn has_no_code_store(venue: &Venue) {
    venue.put_order("BK1", &Order::paid()).await;
    venue.visitor().await.verify_code("BK1").await.refused(503, 2004);
    venue.guide().await.redeem("BK1", "100000").await.refused(503, 2004);
    assert_eq!(venue.nobody().get("/readyz").await.status, 503);
    assert_eq!(venue.status("BK1").await, "paid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_whose_certificate_is_trusted_redeems_and_no_other() {
    let authority = Authority::make("IP:127.0.0.1");
    let redis = authority.start_redis(&["--requirepass", "sesame open"]);
    let url = format!("rediss://:sesame%20open@127.0.0.1:{}", redis.port);
    redeems(&venue_on(url.clone(), Some(authority.ca())).await).await;

    let stranger = Authority::make("IP:127.0.0.1");
    has_no_code_store(&venue_on(url.clone(), Some(stranger.ca())).await).await;
    // The public roots have not signed it.
    has_no_code_store(&venue_on(url, None).await).await;
    let without_password = format!("rediss://127.0.0.1:{}", redis.port);
    has_no_code_store(&venue_on(without_password, Some(authority.ca())).await).await;
    let without_tls = format!("redis://:sesame%20open@127.0.0.1:{}", redis.port);
    has_no_code_store(&venue_on(without_tls, None).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_host_is_not_trusted() {
    let authority = Authority::make("DNS:redis.example.org");
    let redis = authority.start_redis(&[]);
    let url = format!("rediss://127.0.0.1:{}", redis.port);
    has_no_code_store(&venue_on(url, Some(authority.ca())).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_behind_tls_redeems() {
    let authority = Authority::make("IP:127.0.0.1");
    let nodes: Vec<Served> = (0..3)
        .map(|_| {
            let bus = free_port().to_string();
            authority.start_redis(&["--cluster-enabled", "yes", "--cluster-port", &bus, "--tls-cluster", "yes"])
        })
        .collect();
    let addresses: Vec<String> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
    let create: Vec<&str> = ["--cluster", "create"].into_iter().chain(addresses.iter().map(String::as_str)).collect();
    let made = authority.redis_cli(&[&create[..], &["--cluster-yes"]].concat());
    assert!(made.contains("All 16384 slots covered"), "{made}");
    let ask = |node: &Served, command: &[&str]| {
        let port = node.port.to_string();
        authority.redis_cli(&[&["-p", &port], command].concat())
    };
    for node in &nodes {
        wait_until("the cluster is ready", || ask(node, &["cluster", "info"]).contains("cluster_state:ok"));
    }
    let url = format!("rediss+cluster://{}", addresses.join(","));
    redeems(&venue_on(url.clone(), Some(authority.ca())).await).await;
    let used = nodes.iter().filter(|node| ask(node, &["info", "commandstats"]).contains("cmdstat_eval:")).count();
    assert_eq!(used, 3, "the keys were spread over all nodes");
    let stranger = Authority::make("IP:127.0.0.1");
    has_no_code_store(&venue_on(url, Some(stranger.ca())).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_and_its_master_behind_tls_redeem() {
    let authority = Authority::make("IP:127.0.0.1");
    let master = authority.start_redis(&["--requirepass", "sesame"]);
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut settings = authority.arguments(port).chunks(2).map(|setting| setting.join(" ")).collect::<Vec<_>>();
    settings.iter_mut().for_each(|line| *line = line.trim_start_matches("--").to_owned());
    settings.push(format!("bind 127.0.0.1\nsentinel monitor main 127.0.0.1 {} 1", master.port));
    settings.push("sentinel auth-pass main sesame\n".to_owned());
    let file = folder.path().join("sentinel.conf");
    std::fs::write(&file, settings.join("\n")).unwrap();
    let sentinel = Served::start(folder, port, "redis-server", &[file.display().to_string(), "--sentinel".to_owned()]);
    wait_until("the sentinel sees the master", || {
        let seen = authority.redis_cli(&["-p", &port.to_string(), "sentinel", "master", "main"]);
        seen.contains("flags\nmaster\n")
    });
    let url = format!("rediss+sentinel://:sesame@127.0.0.1:{}/main", sentinel.port);
    redeems(&venue_on(url.clone(), Some(authority.ca())).await).await;
    let stranger = Authority::make("IP:127.0.0.1");
    has_no_code_store(&venue_on(url, Some(stranger.ca())).await).await;
}

/// Why a server does not start with this as its CA file.
async fn refusal_of(ca: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::demo_in(folder.path());
    config.code_store.url = DatabaseUrl::new("rediss://127.0.0.1:1");
    config.code_store.ca = Some(ca.to_owned());
    format!("{:#}", guidepost_server::start(config).await.unwrap_err())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ca_file_that_is_missing_or_none_is_named_at_start() {
    let authority = Authority::make("IP:127.0.0.1");
    let file = |name: &str, text: &[u8]| {
        let path = authority.folder().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let pem = std::fs::read(authority.ca()).unwrap();
    for (ca, reason) in [
        (authority.folder().join("absent.pem"), "cannot be read"),
        (authority.folder().to_owned(), "cannot be read"),
        (file("empty.pem", b""), "holds no certificate"),
        (authority.folder().join("leaf.key"), "holds no certificate"),
        (file("cut.pem", &pem[..pem.len() / 2]), "is no PEM file"),
        (
            file("odd.pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "holds a certificate that cannot be used",
        ),
    ] {
        let error = refusal_of(&ca).await;
        assert!(error.contains("`code_store.ca`") && error.contains(reason), "{}: {error}", ca.display());
        assert!(error.contains(&ca.display().to_string()), "{error}");
    }
}

/// What a server on this code store logs until it answers; a process of its own, whose log is all its own.
fn logged_at_start(url: String, ca: Option<PathBuf>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log");
    let mut settings = vec![
        ("DATABASE__URL", format!("sqlite://{}", folder.path().join("guidepost.db").display())),
        ("CODE_STORE__URL", url),
        ("LOG", "info".to_owned()),
    ];
    settings.extend(ca.map(|ca| ("CODE_STORE__CA", ca.display().to_string())));
    drop(ServerProcess::start_with_log(&settings, File::create(&file).unwrap()));
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn a_redis_that_writes_to_disk_is_warned_of_at_start() {
    const WARNING: &str = "this Redis writes to disk";
    let on = |redis: &Served| format!("redis://127.0.0.1:{}", redis.port);
    for (settings, warned) in [
        (&[][..], None),
        (&["--save", "3600 1"], Some("save is set")),
        (&["--appendonly", "yes"], Some("appendonly is on")),
        // Who may not ask for settings is not told, and works all the same.
        (&["--save", "3600 1", "--rename-command", "CONFIG", ""], None),
    ] {
        let redis = start_redis_at(free_port(), settings);
        let log = logged_at_start(on(&redis), None);
        assert!(log.contains("listening"), "{log}");
        match warned {
            Some(why) => assert!(log.contains(WARNING) && log.contains(why), "{settings:?}: {log}"),
            None => assert!(!log.contains(WARNING) && !log.contains("ERROR"), "{settings:?}: {log}"),
        }
    }
}

#[test]
fn a_certificate_that_is_not_trusted_is_named_in_the_log() {
    let (authority, stranger) = (Authority::make("IP:127.0.0.1"), Authority::make("IP:127.0.0.1"));
    let redis = authority.start_redis(&["--requirepass", "sesame"]);
    let url = format!("rediss://:sesame@127.0.0.1:{}", redis.port);
    let log = logged_at_start(url, Some(stranger.ca()));
    assert!(log.contains("certificate") && !log.contains("sesame"), "{log}");
}
