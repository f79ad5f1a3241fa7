//! The machine interface, as far as a venue needs it to be set up.

use crate::every_store;
use api_tests::{Order, START, Stores, Venue};
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

#[apply(every_store)]
async fn an_order_goes_through_its_life_and_no_other_way(stores: Stores) {
    const ALL: [&str; 6] = ["pending_payment", "paid", "consumed", "refunding", "refunded", "cancelled"];
    let legal = [
        ("pending_payment", "paid"),
        ("pending_payment", "cancelled"),
        ("paid", "refunding"),
        ("paid", "cancelled"),
        ("refunding", "refunded"),
        ("refunding", "paid"),
    ];
    let venue = Venue::open(stores).await;
    for from in ALL {
        for to in ALL {
            let order_no = format!("{from}-{to}");
            venue.put_order(&order_no, &Order::paid().with("status", from)).await;
            let path = format!("/open-api/orders/{order_no}");
            let answer = venue.machine().put(&path, &Order::paid().with("status", to).body).await;
            if from == to || legal.contains(&(from, to)) {
                assert_eq!(answer.ok(), json!({"orderNo": order_no.to_uppercase(), "status": to, "taskNo": "T1"}));
            } else {
                assert_eq!(answer.refused(409, 1409)["status"], from, "{order_no}");
                assert_eq!(venue.status(&order_no.to_uppercase()).await, from);
            }
        }
    }
}

#[apply(every_store)]
async fn an_order_that_arrives_consumed_has_an_audit_row_of_the_system(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_order("BK1", &Order::paid().with("status", "consumed")).await;
    let row: (String, i64) = sqlx::query_as("SELECT operator_type, result FROM redemption")
        .fetch_one(&venue.database().await)
        .await
        .unwrap();
    assert_eq!(row, ("system".to_owned(), 0));
}

#[apply(every_store)]
async fn leaving_paid_kills_the_code_even_if_the_order_comes_back(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    for status in ["refunding", "paid"] {
        venue.put_order("BK1", &Order::paid().with("status", status)).await;
    }
    venue.guide().await.redeem("BK1", &code).await.refused(422, 2003);
}

#[apply(every_store)]
async fn another_mobile_number_kills_the_code_and_gives_the_order_to_its_owner(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    let old_owner = venue.visitor().await;
    venue.put_order("BK1", &Order::paid().with("mobile", "13800000002")).await;
    venue.guide().await.redeem("BK1", &code).await.refused(422, 2003);
    old_owner.verify_code("BK1").await.refused(404, 2001);
    venue.sign_in("13800000002").await.verify_code("BK1").await.ok();
}

/// The caller is gone as soon as the server has committed; the code goes all the same.
#[apply(every_store)]
async fn a_machine_that_hangs_up_does_not_keep_a_code_alive(stores: Stores) {
    let venue = Venue::open(stores).await;
    let guide = venue.guide().await;
    let (name, key) = venue.machine().credential.clone().unwrap();
    for n in 0..20 {
        let order_no = format!("BK{n}");
        let code = venue.paid_order_with_code(&order_no).await;
        let body = Order::paid().with("status", "refunding").body.to_string();
        let request = format!(
            "PUT /open-api/orders/{order_no} HTTP/1.1\r\nhost: x\r\n{name}: {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut line = TcpStream::connect(venue.server.address()).await.unwrap();
        line.write_all(request.as_bytes()).await.unwrap();
        while venue.status(&order_no).await == "paid" {
            tokio::task::yield_now().await;
        }
        drop(line);
        // What was begun is finished before this venue's next change of the order.
        while !venue.server.app().tasks.is_empty() {
            tokio::task::yield_now().await;
        }
        venue.put_order(&order_no, &Order::paid()).await;
        guide.redeem(&order_no, &code).await.refused(422, 2003);
        venue.advance(std::time::Duration::from_secs(61)).await;
    }
}

#[apply(every_store)]
async fn an_omitted_task_stays_null_clears_and_an_unknown_one_is_refused(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_order("BK1", &Order::paid()).await;
    let put = async |order: Order| venue.machine().put("/open-api/orders/BK1", &order.body).await;
    let mut without = Order::paid();
    without.body.as_object_mut().unwrap().remove("taskNo");
    assert_eq!(put(without).await.ok()["taskNo"], "T1");
    assert_eq!(put(Order::paid().with("taskNo", json!(null))).await.ok()["taskNo"], json!(null));
    assert_eq!(put(Order::paid().with("taskNo", "t1")).await.ok()["taskNo"], "T1");
    assert_eq!(put(Order::paid().with("taskNo", "T9")).await.refused(400, 1400)["field"], "taskNo");
}

#[apply(every_store)]
async fn a_task_takes_known_guides_alone(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_order("BK1", &Order::paid()).await;
    // 13800000001 is a visitor's number by now, and no guide's.
    for mobile in ["13900000009", "13800000001"] {
        let body = json!({"title": "x", "venue": "y", "startsAt": START, "endsAt": START, "guideMobiles": [mobile]});
        let data = venue.machine().put("/open-api/tasks/T2", &body).await.refused(400, 1400);
        assert_eq!(data["field"], "guideMobiles");
    }
}

#[apply(every_store)]
async fn a_guide_posted_again_gets_the_new_name(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_guide("+8613900000001", "林小悦").await;
    let me = venue.guide().await.get("/api/auth/me").await.ok();
    assert_eq!((&me["name"], &me["roles"]), (&json!("林小悦"), &json!(["guide"])));
}

#[apply(every_store)]
async fn a_machine_needs_a_key_and_a_key_opens_nothing_else(stores: Stores) {
    let venue = Venue::open(stores).await;
    let body = json!({"mobile": "13900000009", "name": "x"});
    venue.nobody().post("/open-api/guides", &body).await.refused(401, 1401);
    let mut wrong = venue.machine().clone();
    wrong.credential = Some(("x-api-key".to_owned(), "gp_wrong".to_owned()));
    wrong.post("/open-api/guides", &body).await.refused(401, 1401);
    venue.guide().await.post("/open-api/guides", &body).await.refused(401, 1401);
    venue.machine().get("/app-api/team/guide-task/list").await.refused(401, 1401);
}

/// Whoever finds that another was first looks again, and changes what it wanted to make.
#[apply(every_store)]
async fn first_puts_of_one_thing_at_once_all_succeed(stores: Stores) {
    let venue = Venue::open(stores).await;
    let machine = venue.machine();
    for n in 0..5 {
        let order = |party: i64| Order::paid().with("partySize", party).with("mobile", format!("1370000000{n}")).body;
        let puts = (1..=8).map(|party| {
            let (path, body) = (format!("/open-api/orders/NEW{n}"), order(party));
            async move { machine.put(&path, &body).await.ok() }
        });
        futures::future::join_all(puts).await;
        let task =
            json!({"title": "x", "venue": "y", "startsAt": START, "endsAt": START, "guideMobiles": ["13900000001"]});
        let puts = (0..8).map(|_| async { machine.put(&format!("/open-api/tasks/NEW{n}"), &task).await.ok() });
        futures::future::join_all(puts).await;
        let guide = json!({"mobile": format!("1360000000{n}"), "name": "x"});
        let posts = (0..8).map(|_| async { machine.post("/open-api/guides", &guide).await.ok() });
        futures::future::join_all(posts).await;
    }
    assert_eq!(venue.count("SELECT COUNT(*) FROM booking_order").await, 5);
}
