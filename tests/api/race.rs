//! Many at once: the conditional update and its unique row decide, whoever comes first.

use crate::every_store;
use api_tests::{Order, Stores, Venue};
use futures::future::join_all;
use rstest::rstest;
use rstest_reuse::apply;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Barrier;

/// One hundred guides, a session each, redeem one order at the same moment with the right code.
#[apply(every_store)]
async fn of_100_simultaneous_redemptions_one_succeeds(stores: Stores) {
    const GUIDES: usize = 100;
    let venue = Venue::open(stores).await;
    let mobiles: Vec<String> = (0..GUIDES).map(|n| format!("139{n:08}")).collect();
    for mobile in &mobiles {
        venue.put_guide(mobile, "讲解员").await;
    }
    venue.put_task("T1", &mobiles.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let code = venue.paid_order_with_code("BK1").await;
    let mut guides = Vec::new();
    for mobile in &mobiles {
        guides.push(venue.sign_in(mobile).await);
    }

    let barrier = Arc::new(Barrier::new(GUIDES));
    let blocker = venue.block("BK1").await;
    let attempts: Vec<_> = guides
        .into_iter()
        .map(|guide| {
            let (barrier, code) = (barrier.clone(), code.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                guide.redeem("BK1", &code).await.code()
            })
        })
        .collect();
    // Nobody may write until all have arrived, so that as many as can be have looked at status and code by then.
    while venue.server.app().tasks.len() < GUIDES {
        tokio::task::yield_now().await;
    }
    blocker.rollback().await.unwrap();
    let mut answers = BTreeMap::<i64, usize>::new();
    for answer in join_all(attempts).await {
        *answers.entry(answer.unwrap()).or_default() += 1;
    }

    let results = venue.results("BK1").await;
    let successes = results.iter().filter(|result| **result == 0).count();
    assert_eq!((answers, successes), (BTreeMap::from([(0, 1), (2002, GUIDES - 1)]), 1), "one order, one redemption");
    assert_eq!(venue.status("BK1").await, "consumed");
}

#[apply(every_store)]
async fn a_repeat_that_overtakes_its_first_attempt_gets_the_same_success(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    let answers = join_all((0..8).map(|_| guide.redeem_as("BK1", &code, "attempt-1"))).await;
    let replayed: Vec<bool> = answers.iter().map(|a| a.ok()["replayed"].as_bool().unwrap()).collect();
    assert_eq!(replayed.iter().filter(|r| !**r).count(), 1, "{replayed:?}");
    assert_eq!(venue.results("BK1").await, [0]);
}

#[apply(every_store)]
async fn all_who_ask_for_a_code_at_once_get_the_same_one(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_order("BK1", &Order::paid()).await;
    let visitor = venue.visitor().await;
    let answers = join_all((0..50).map(|_| visitor.verify_code("BK1"))).await;
    let codes: std::collections::BTreeSet<String> =
        answers.iter().map(|a| a.ok()["verifyCode"].as_str().unwrap().to_owned()).collect();
    assert_eq!(codes.len(), 1);
}

/// A refund and a redemption of the same order at the same moment: one of them wins, and the row agrees with the answers.
/// The loser of a round gets a head start in the next one, so that both win and the moments come as close as can be.
#[apply(every_store)]
async fn a_refund_and_a_redemption_at_once_have_one_winner(stores: Stores) {
    /// By how many of the runtime's turns the head start changes; twice as many each time that the same one wins again.
    const STEP: i64 = 20;
    const LARGEST_STEP: i64 = 20_000;
    let venue = Venue::open(stores).await;
    let guide = venue.guide().await;
    let wait = async |turns: i64| {
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    };
    let (mut head_start, mut step, mut last) = (0_i64, STEP, None);
    let (mut redemptions, mut refunds) = (0, 0);
    for n in 0..200 {
        let order_no = format!("BK{n}");
        let code = venue.paid_order_with_code(&order_no).await;
        let refund = Order::paid().with("status", "refunding");
        let path = format!("/open-api/orders/{order_no}");
        let redeem = async {
            wait(-head_start).await;
            guide.redeem(&order_no, &code).await
        };
        let pay_back = async {
            wait(head_start).await;
            venue.machine().put(&path, &refund.body).await
        };
        let (redeemed, refunded) = tokio::join!(redeem, pay_back);
        let status = venue.status(&order_no).await;
        let said = match (redeemed.code(), refunded.code()) {
            (0, 1409) => {
                redemptions += 1;
                assert_eq!(status, "consumed");
                refunded.data()["status"].clone()
            }
            (2002, 0) => {
                refunds += 1;
                assert_eq!(status, "refunding");
                redeemed.data()["status"].clone()
            }
            other => panic!("{other:?}, the order is {status}"),
        };
        assert_eq!(said, status, "round {n}: the loser was told another status than the one that stands");
        step = if last.as_ref() == Some(&status) { LARGEST_STEP.min(2 * step) } else { STEP };
        head_start += if status == "consumed" { -step } else { step };
        let successes = venue.results(&order_no).await.into_iter().filter(|result| *result == 0).count();
        assert_eq!(successes, usize::from(status == "consumed"));
        last = Some(status);
    }
    assert!(redemptions > 0 && refunds > 0, "{redemptions} redemptions and {refunds} refunds: no race");
}
