//! `/docs`: the interface as a page for people.

use api_tests::{Stores, Venue};

#[tokio::test(flavor = "multi_thread")]
async fn the_docs_are_a_page_that_loads_nothing_and_runs_nothing() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let page = venue.nobody().get("/docs").await;
    assert_eq!(page.status, 200);
    let header = |name: &str| page.headers[name].to_str().unwrap().to_owned();
    assert!(header("content-type").starts_with("text/html"));
    let policy = header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    for what in ["<script", "<link", "<img", "<iframe", "@import", "url(", " src=", "href=\"http", " style="] {
        assert!(!page.text.contains(what), "{what} is on the page");
    }
    for what in ["PUT</span> <code>/open-api/orders/{orderNo}", "X-Api-Key", "VERIFY_CODE_INVALID", "visitorName"] {
        assert!(page.text.contains(what), "{what} is not on the page");
    }
    assert_eq!(venue.nobody().get("/docs/nothing").await.status, 404);
}
