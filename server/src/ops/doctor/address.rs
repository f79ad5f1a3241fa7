//! Port and public address, as `doctor` sees them: who answers there, and whether phones trust it.

use super::super::backup::in_zone;
use super::Findings;
use crate::clock::Clock;
use crate::config::Config;
use axum::http::Uri;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Nobody is waited for longer, each time.
const PATIENCE: Duration = Duration::from_secs(5);

/// A certificate that ends sooner is named: those that renew by themselves do so a month before.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

const PORT: &str = "port";
const URL: &str = "public_url";

/// Whether the port can be had; says whether a guidepost serves there.
pub(super) async fn port(found: &mut Findings, config: &Config) -> bool {
    let listen = config.listen;
    if listen.port() == 0 {
        found.ok(PORT, "any free one (`listen` names port 0)");
        return false;
    }
    let error = match TcpListener::bind(listen) {
        Ok(_) => {
            found.ok(PORT, format!("{listen} is free: no server runs there now"));
            return false;
        }
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::AddrInUse => {
            let at = SocketAddr::new(reachable(listen.ip()), listen.port());
            let asked = tokio::task::spawn_blocking(move || healthy_at(at)).await;
            if matches!(asked, Ok(Ok(true))) {
                found.ok(PORT, format!("{listen} is served by a guidepost-server"));
                return true;
            }
            found.fault(
                PORT,
                format!("another program has {listen}"),
                format!("find it (ss -ltnp 'sport = :{}') and end it, or set another port in `listen`", listen.port()),
            );
        }
        ErrorKind::PermissionDenied => found.fault(
            PORT,
            format!("this user may not listen on {listen}"),
            "use a port above 1023 with a proxy in front, or AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit file",
        ),
        ErrorKind::AddrNotAvailable => found.fault(
            PORT,
            format!("this machine has no address {}", listen.ip()),
            "set `listen` to one that it has (ip address), or to 0.0.0.0 for all",
        ),
        _ => found.fault(PORT, format!("{listen} cannot be had: {error}"), "set another `listen`"),
    }
    false
}

fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

fn healthy_at(address: SocketAddr) -> std::io::Result<bool> {
    healthy(&mut open(address)?, &address.to_string())
}

fn open(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Asks `/healthz`, and whether it is ours that answers.
fn healthy(stream: &mut (impl Read + Write), host: &str) -> std::io::Result<bool> {
    // HTTP/1.0: the answer ends with the connection, in one piece.
    write!(stream, "GET /healthz HTTP/1.0\r\nHost: {host}\r\nAccept: */*\r\n\r\n")?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.take(16 * 1024).read_to_end(&mut answer) {
        // TLS without a farewell: what came is looked at all the same.
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(error),
        _ => {}
    }
    let answer = String::from_utf8_lossy(&answer).to_ascii_lowercase();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1);
    Ok(status == Some("200") && head.contains("\r\nx-request-id:") && body.trim() == "ok")
}

/// The address that people use: reachable, trusted by their phones, and ours.
pub(super) async fn public_url(
    found: &mut Findings,
    config: &Config,
    ca: Option<&Path>,
    clock: &Arc<dyn Clock>,
    serving: bool,
) {
    let Some(url) = &config.public_url else {
        if config.listen.ip().is_loopback() {
            found.ok(URL, "not set: this machine alone uses the server");
        } else {
            found.warning(
                URL,
                "not set, and the server is for other machines",
                "set it to the address that people use, like https://tickets.example.org",
            );
        }
        return;
    };
    let correct = "write it like https://tickets.example.org, without a user name or a path";
    let Ok(uri) = url.parse::<Uri>() else { return found.fault(URL, "it is no address", correct) };
    let (Some(host), Some(authority)) = (uri.host(), uri.authority()) else {
        return found.fault(URL, "it names no host", correct);
    };
    // A password in it would be shown to everybody.
    if authority.as_str().contains('@') {
        return found.fault(URL, "it holds a user name or a password", correct);
    }
    let tls = uri.scheme_str() == Some("https");
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
    let here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if here && !config.listen.ip().is_loopback() {
        found.warning(
            URL,
            format!("{host} is this machine alone, and the server is for other machines"),
            "set it to the address that people use, like https://tickets.example.org",
        );
    }
    if !tls && !here {
        found.fault(
            URL,
            "it is plain HTTP: browsers do not keep the sign-in, and codes and tokens cross the network unprotected",
            "put a proxy that ends TLS before the server, and write https://",
        );
    }
    let trusted = match ca.map(read_ca).transpose() {
        Ok(trusted) => trusted.unwrap_or_default(),
        Err(reason) => return found.fault(URL, reason, "name a PEM file with --ca"),
    };
    let (asked_clock, asked_host, asked_port) = (clock.clone(), host.clone(), port);
    let asked =
        tokio::task::spawn_blocking(move || ask(&asked_host, asked_port, tls.then_some((trusted, asked_clock))));
    let away = asked.await.unwrap_or_else(|_| Err(Away::Other("the question failed".to_owned())));
    let at = format!("{host}:{port}");
    match away {
        Ok(Reached { ours: true, ends_soon: false }) => found.ok(URL, format!("a guidepost-server answers at {at}")),
        Ok(Reached { ours: true, ends_soon: true }) => found.warning(
            URL,
            format!("the certificate of {at} ends within {} days", SOON.as_secs() / 86_400),
            "renew it, and see why it was not renewed by itself",
        ),
        Ok(Reached { ours: false, .. }) if serving => found.fault(
            URL,
            format!("what answers at {at} is not this server"),
            format!("let the proxy there pass everything to {}, or correct `public_url`", config.listen),
        ),
        Ok(Reached { ours: false, .. }) => found.warning(
            URL,
            format!("something answers at {at}, and no server runs on {} now", config.listen),
            "start the server and ask again",
        ),
        Err(away) => tell(found, &at, &host, &away, config, serving),
    }
}

/// What came of asking.
struct Reached {
    ours: bool,
    ends_soon: bool,
}

/// Why nothing came of asking.
enum Away {
    NoSuchName,
    Refused,
    NoAnswer,
    Certificate { error: CertificateError, sent: Chain },
    NoTls,
    Other(String),
}

/// What the other side sent.
#[derive(Debug, Clone, Copy, Default)]
struct Chain {
    intermediates: usize,
    signed_itself: bool,
    ends_soon: bool,
}

fn tell(found: &mut Findings, at: &str, host: &str, away: &Away, config: &Config, serving: bool) {
    match away {
        Away::NoSuchName => {
            found.fault(URL, format!("the name {host} is not known (DNS)"), "make the name's record, or correct it");
        }
        Away::Refused if serving => found.fault(
            URL,
            format!("nothing listens at {at}"),
            "start the proxy there, or correct the port in `public_url`",
        ),
        Away::Refused => found.warning(
            URL,
            format!("nothing listens at {at} now"),
            "start the server, and the proxy before it where there is one, and ask again",
        ),
        Away::NoAnswer => found.fault(
            URL,
            format!("{at} does not answer"),
            "check the address and the firewall; some networks do not let a machine reach its own public address",
        ),
        Away::NoTls => found.fault(
            URL,
            format!("what answers at {at} does not speak TLS"),
            "correct the port: it is that of plain HTTP; or set up TLS in the proxy there",
        ),
        Away::Certificate { error, sent } => {
            let (text, next) = certificate_in_words(error, *sent, host, &config.timezone);
            found.fault(URL, format!("phones do not trust {at}: {text}"), next);
        }
        Away::Other(reason) => found.fault(URL, format!("{at} cannot be asked: {reason}"), "see the proxy's log"),
    }
}

/// Which of name, chain and clock it is.
fn certificate_in_words(error: &CertificateError, sent: Chain, host: &str, zone: &str) -> (String, &'static str) {
    let told = |time: &UnixTime| {
        let ms = i64::try_from(time.as_secs()).unwrap_or(0) * 1000;
        in_zone(ms, zone, "%Y-%m-%d %H:%M").unwrap_or_default()
    };
    match error {
        CertificateError::ExpiredContext { time, not_after } => (
            format!("its certificate ran out on {}, and the clock here says {}", told(not_after), told(time)),
            "renew the certificate; or, if the clock is wrong, set it",
        ),
        CertificateError::Expired => {
            ("its certificate has run out".to_owned(), "renew the certificate; or, if the clock is wrong, set it")
        }
        CertificateError::NotValidYetContext { time, not_before } => (
            format!("its certificate begins on {}, and the clock here says {}", told(not_before), told(time)),
            "set the clock by NTP (timedatectl set-ntp true); if it is right, wait or get another certificate",
        ),
        CertificateError::NotValidYet => (
            "its certificate is for later".to_owned(),
            "set the clock by NTP (timedatectl set-ntp true); if it is right, wait or get another certificate",
        ),
        CertificateError::NotValidForNameContext { presented, .. } => (
            format!("its certificate is for another name: {}, not {host}", names(presented)),
            "get a certificate for the name in `public_url`, or correct the name there",
        ),
        CertificateError::NotValidForName => (
            format!("its certificate is not for the name {host}"),
            "get a certificate for the name in `public_url`, or correct the name there",
        ),
        CertificateError::UnknownIssuer if sent.signed_itself => {
            ("its certificate has signed itself".to_owned(), "get one from a public CA, such as Let's Encrypt")
        }
        CertificateError::UnknownIssuer if sent.intermediates == 0 => (
            "the chain is incomplete: it sends its own certificate alone, and no CA that phones know has signed that"
                .to_owned(),
            "let the proxy send the whole chain (fullchain.pem in place of cert.pem); with a CA of your own, name it with \
             --ca, and note that visitors' phones do not know it",
        ),
        CertificateError::UnknownIssuer => (
            "no CA that phones know stands at the end of its chain".to_owned(),
            "get a certificate from a public CA; with a CA of your own, name it with --ca, and note that visitors' phones do \
             not know it",
        ),
        other => (format!("its certificate cannot be used ({other})"), "get another certificate"),
    }
}

/// `DnsName("example.org")` is not for people.
fn names(presented: &[String]) -> String {
    let name = |text: &String| text.split('"').nth(1).unwrap_or(text).to_owned();
    presented.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn read_ca(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error| format!("the CA {} cannot be read: {error}", file.display());
    CertificateDer::pem_file_iter(file).map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)
}

/// Asks a server, over TLS where the CAs that are trusted beside the public ones are given.
fn ask(host: &str, port: u16, tls: Option<(Vec<CertificateDer<'static>>, Arc<dyn Clock>)>) -> Result<Reached, Away> {
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(|_| Away::NoSuchName)?.collect();
    let mut last = Away::NoSuchName;
    let mut stream = None;
    for address in addresses {
        match open(address) {
            Ok(opened) => {
                stream = Some(opened);
                break;
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => last = Away::Refused,
            Err(_) => last = Away::NoAnswer,
        }
    }
    let Some(mut stream) = stream else { return Err(last) };
    let Some((trusted, clock)) = tls else {
        let ours = healthy(&mut stream, host).unwrap_or(false);
        return Ok(Reached { ours, ends_soon: false });
    };
    let verifier = Arc::new(Watching::new(trusted, clock).map_err(|error| Away::Other(error.to_string()))?);
    let settings = ClientConfig::builder().dangerous().with_custom_certificate_verifier(verifier.clone());
    let name = ServerName::try_from(host.to_owned()).map_err(|_| Away::NoSuchName)?;
    let mut connection = ClientConnection::new(Arc::new(settings.with_no_client_auth()), name)
        .map_err(|error| Away::Other(error.to_string()))?;
    if let Err(error) = connection.complete_io(&mut stream).map(drop).and_then(|()| {
        // The handshake may need more than one round.
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(())
    }) {
        return Err(handshake_failed(&error, verifier.seen()));
    }
    let ours = healthy(&mut rustls::Stream::new(&mut connection, &mut stream), host).unwrap_or(false);
    Ok(Reached { ours, ends_soon: verifier.seen().ends_soon })
}

fn handshake_failed(error: &std::io::Error, sent: Chain) -> Away {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(error)) => Away::Certificate { error: error.clone(), sent },
        Some(rustls::Error::InvalidMessage(_)) => Away::NoTls,
        _ if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Away::NoAnswer,
        _ if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => Away::NoTls,
        _ => Away::Other(error.to_string()),
    }
}

/// Checks as the public CAs' verifier does, by the clock that was passed in, and remembers what was sent.
#[derive(Debug)]
struct Watching {
    strict: Arc<WebPkiServerVerifier>,
    clock: Arc<dyn Clock>,
    seen: Mutex<Chain>,
}

impl Watching {
    fn new(trusted: Vec<CertificateDer<'static>>, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for ca in trusted {
            roots.add(ca)?;
        }
        let strict = WebPkiServerVerifier::builder(Arc::new(roots)).build()?;
        Ok(Self { strict, clock, seen: Mutex::default() })
    }

    fn seen(&self) -> Chain {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerCertVerifier for Watching {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let now = Duration::from_millis(u64::try_from(self.clock.now_ms()).unwrap_or(0));
        let at = |time| {
            let time = UnixTime::since_unix_epoch(time);
            self.strict.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, time)
        };
        let verdict = at(now);
        let leaf = webpki::EndEntityCert::try_from(end_entity).ok();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Chain {
            intermediates: intermediates.len(),
            signed_itself: leaf.is_some_and(|leaf| leaf.issuer() == leaf.subject()),
            ends_soon: verdict.is_ok() && at(now + SOON).is_err(),
        };
        verdict
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.strict.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.strict.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.strict.supported_verify_schemes()
    }
}
