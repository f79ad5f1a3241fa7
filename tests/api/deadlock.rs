//! A redemption that the database undoes, to end a deadlock, is tried once more.

use api_tests::stores::{mariadb, start_mariadb};
use api_tests::{Stores, Venue};
use guidepost_server::config::DatabaseUrl;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn the_victim_of_a_deadlock_is_tried_once_more_and_succeeds() {
    let server = start_mariadb();
    mariadb(&server, "CREATE DATABASE venue");
    let venue = Venue::open_with(Stores::SqliteRedis, |config| {
        config.database.url = DatabaseUrl::new(format!("mysql://root@127.0.0.1:{}/venue", server.port));
    })
    .await;
    mariadb(&server, "CREATE TABLE venue.ballast (n INT PRIMARY KEY) ENGINE = InnoDB");
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;

    // The other transaction has changed much, so that undoing the redemption costs less. It holds the tenant's row, which
    // the redemption's audit row refers to, and then asks for the order's, which the redemption holds by then.
    let database = venue.database().await;
    let mut other = database.begin().await.unwrap();
    sqlx::query("INSERT INTO ballast SELECT seq FROM seq_1_to_1000").execute(&mut *other).await.unwrap();
    sqlx::query("SELECT id FROM tenant WHERE id = 1 FOR UPDATE").fetch_one(&mut *other).await.unwrap();
    let redeemed = tokio::spawn(async move { guide.redeem_as("BK1", &code, "r-1").await });
    // The server is this test's alone. INNODB_LOCK_WAITS would stand still for whoever asks it often.
    let waits = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS
        WHERE VARIABLE_NAME = 'INNODB_ROW_LOCK_CURRENT_WAITS'";
    let started = Instant::now();
    while sqlx::query_scalar::<_, String>(waits).fetch_one(&database).await.unwrap() != "1" {
        assert!(started.elapsed() < Duration::from_secs(30), "the redemption never waited for the tenant's row");
        tokio::task::yield_now().await;
    }
    sqlx::query("SELECT id FROM booking_order WHERE order_no = 'BK1' FOR UPDATE")
        .fetch_one(&mut *other)
        .await
        .expect("the database should have undone the redemption");
    // The redemption was undone: the order is still paid, and stays so while this transaction holds it.
    assert_eq!(venue.status("BK1").await, "paid");
    other.rollback().await.unwrap();

    let answer = redeemed.await.unwrap().ok();
    assert_eq!(answer["replayed"], false);
    assert_eq!(venue.status("BK1").await, "consumed");
    assert_eq!(venue.results("BK1").await, [0]);
    assert_eq!(mariadb(&server, "SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'").trim(), "Innodb_deadlocks\t1");
    let status = mariadb(&server, "SHOW ENGINE INNODB STATUS");
    let (_, deadlock) = status.split_once("LATEST DETECTED DEADLOCK").expect("a deadlock was detected");
    assert!(deadlock.contains("INSERT INTO redemption"), "another deadlock: {deadlock}");
}
