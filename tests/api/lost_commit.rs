//! The line to the database is lost at the commit: 1503, and the request id finds out what became of it.

use api_tests::stores::shared_mariadb;
use api_tests::{Caller, Stores, Venue};
use guidepost_server::config::DatabaseUrl;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What becomes of the next commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Cut {
    /// All is passed on.
    Not,
    /// The database never hears of it.
    Before,
    /// The database has answered, and nobody hears that.
    After,
}

/// A line to MariaDB that can be cut at a commit.
struct Line {
    port: u16,
    cut: Arc<AtomicU8>,
    cuts: Arc<AtomicUsize>,
}

/// The length of the first whole packet in `bytes`, its head of four bytes included.
fn packet(bytes: &[u8]) -> Option<usize> {
    let head = bytes.get(..4)?;
    let length = 4 + usize::from(head[0]) + (usize::from(head[1]) << 8) + (usize::from(head[2]) << 16);
    (bytes.len() >= length).then_some(length)
}

/// `COM_QUERY` with `COMMIT`.
fn is_commit(packet: &[u8]) -> bool {
    packet[4..].split_first().is_some_and(|(kind, text)| *kind == 3 && text.eq_ignore_ascii_case(b"COMMIT"))
}

impl Line {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let line = Self { port, cut: Arc::default(), cuts: Arc::default() };
        let (cut, cuts) = (line.cut.clone(), line.cuts.clone());
        let database = shared_mariadb();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (cut, cuts) = (cut.clone(), cuts.clone());
                tokio::spawn(async move {
                    let upstream = TcpStream::connect(("127.0.0.1", database)).await.unwrap();
                    pass_on(client, upstream, &cut, &cuts).await
                });
            }
        });
        line
    }

    fn cut_next(&self, cut: Cut) {
        self.cut.store(cut as u8, Ordering::SeqCst);
    }

    fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

/// Passes packets on until either side closes, or a commit is to be cut. What was read is dropped with the line.
async fn pass_on(
    mut client: TcpStream,
    mut upstream: TcpStream,
    cut: &AtomicU8,
    cuts: &AtomicUsize,
) -> std::io::Result<()> {
    let (mut asked, mut answered) = (Vec::new(), vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read_buf(&mut asked) => if read? == 0 { return Ok(()) },
            read = upstream.read(&mut answered) => match read? {
                0 => return Ok(()),
                n => client.write_all(&answered[..n]).await?,
            },
        }
        while let Some(length) = packet(&asked) {
            let one: Vec<u8> = asked.drain(..length).collect();
            let armed = if is_commit(&one) { cut.swap(Cut::Not as u8, Ordering::SeqCst) } else { Cut::Not as u8 };
            if armed == Cut::Before as u8 {
                cuts.fetch_add(1, Ordering::SeqCst);
                return Ok(());
            }
            upstream.write_all(&one).await?;
            if armed == Cut::After as u8 {
                let mut answer = Vec::new();
                while packet(&answer).is_none() {
                    upstream.read_buf(&mut answer).await?;
                }
                assert_eq!(answer[4], 0, "the database refused the commit");
                cuts.fetch_add(1, Ordering::SeqCst);
                return Ok(());
            }
        }
    }
}

/// A venue whose server reaches its database over this line; a paid order BK1, its code, and the guide.
async fn venue_over(line: &Line) -> (Venue, String, Caller) {
    let venue = Venue::open_with(Stores::MariadbRedis, |config| {
        let direct = format!("127.0.0.1:{}", shared_mariadb());
        let through = config.database.url.expose().replace(&direct, &format!("127.0.0.1:{}", line.port));
        // The line must be able to read what it passes on.
        config.database.url = DatabaseUrl::new(format!("{through}?ssl-mode=DISABLED"));
    })
    .await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    (venue, code, guide)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_1503_and_the_request_id_finds_the_success() {
    let line = Line::open().await;
    let (venue, code, guide) = venue_over(&line).await;
    line.cut_next(Cut::After);
    guide.redeem_as("BK1", &code, "r-1").await.refused(503, 1503);
    assert_eq!(line.cuts(), 1, "no commit was cut");
    assert_eq!(venue.status("BK1").await, "consumed");
    assert_eq!(venue.results("BK1").await, [0]);

    let repeat = guide.redeem_as("BK1", &code, "r-1").await.ok();
    assert_eq!((&repeat["replayed"], &repeat["status"]), (&json!(true), &json!("consumed")));
    // Another attempt is another attempt, though the code was not deleted.
    guide.redeem_as("BK1", &code, "r-2").await.refused(409, 2002);
    let successes = venue.results("BK1").await.into_iter().filter(|result| *result == 0).count();
    assert_eq!(successes, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_never_arrived_is_1503_and_the_same_request_id_redeems() {
    let line = Line::open().await;
    let (venue, code, guide) = venue_over(&line).await;
    line.cut_next(Cut::Before);
    guide.redeem_as("BK1", &code, "r-1").await.refused(503, 1503);
    assert_eq!(line.cuts(), 1, "no commit was cut");
    assert_eq!(venue.status("BK1").await, "paid");
    assert!(venue.results("BK1").await.is_empty());

    let repeat = guide.redeem_as("BK1", &code, "r-1").await.ok();
    assert_eq!((&repeat["replayed"], &repeat["status"]), (&json!(false), &json!("consumed")));
    assert_eq!(venue.results("BK1").await, [0]);
}
