//! The server has committed, the answer is lost: the repeat finds out.

use crate::every_store;
use api_tests::{Stores, Venue};
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Passes one request on, waits for the whole answer of the server, and cuts the line instead of passing it back.
async fn answer_eater(server: SocketAddr) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let eater = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut upstream = TcpStream::connect(server).await.unwrap();
        let (mut request, mut answer) = ([0; 8192], Vec::new());
        loop {
            let mut buffer = [0; 8192];
            tokio::select! {
                read = client.read(&mut request) => match read {
                    Ok(n) if n > 0 => upstream.write_all(&request[..n]).await.unwrap(),
                    _ => break,
                },
                read = upstream.read(&mut buffer) => {
                    answer.extend_from_slice(&buffer[..read.unwrap()]);
                    if answer.ends_with(b"}") { break }
                }
            }
        }
        String::from_utf8(answer).unwrap()
    });
    (address, eater)
}

#[apply(every_store)]
async fn the_same_request_id_finds_the_success_whose_answer_was_lost(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    let (address, eater) = answer_eater(venue.server.address()).await;
    let mut through = venue.at(format!("http://{address}"));
    through.credential = guide.credential.clone();
    let body = json!({"orderNo": "BK1", "verifyCode": code, "requestId": "attempt-1"});
    let lost =
        through.request(reqwest::Method::POST, "/app-api/team/guide-task/booking/consume").json(&body).send().await;
    assert!(lost.is_err(), "the answer should have been lost");
    assert!(eater.await.unwrap().contains("\"replayed\":false"), "the server had answered with a success");
    assert_eq!(venue.status("BK1").await, "consumed");

    let repeat = guide.redeem_as("BK1", &code, "attempt-1").await.ok();
    assert_eq!((&repeat["replayed"], &repeat["status"]), (&json!(true), &json!("consumed")));
    guide.redeem_as("BK1", &code, "attempt-2").await.refused(409, 2002);
}

#[apply(every_store)]
async fn a_caller_who_hangs_up_does_not_stop_a_redemption_half_way(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    let (_, token) = guide.credential.clone().unwrap();
    let body = json!({"orderNo": "BK1", "verifyCode": code, "requestId": "attempt-1"}).to_string();
    let request = format!(
        "POST /app-api/team/guide-task/booking/consume HTTP/1.1\r\nhost: x\r\nauthorization: {token}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut line = TcpStream::connect(venue.server.address()).await.unwrap();
    line.write_all(request.as_bytes()).await.unwrap();
    drop(line);
    // Whether the server had begun or not, the repeat ends in one success.
    let repeat = guide.redeem_as("BK1", &code, "attempt-1").await;
    repeat.ok();
    assert_eq!(venue.results("BK1").await, [0]);
}
