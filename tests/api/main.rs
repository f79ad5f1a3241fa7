//! The HTTP interface over real HTTP: one test an outcome, its name a sentence.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rstest_reuse::{self, template};

/// Every test runs on each of these.
#[template]
#[rstest]
#[case::sqlite_memory(Stores::SqliteMemory)]
#[case::sqlite_redis(Stores::SqliteRedis)]
#[case::mariadb_redis(Stores::MariadbRedis)]
#[tokio::test(flavor = "multi_thread")]
async fn every_store(#[case] stores: Stores) {}

/// The same, and a Cluster: where what matters is the code store's own steps.
#[template]
#[rstest]
#[case::sqlite_memory(Stores::SqliteMemory)]
#[case::sqlite_redis(Stores::SqliteRedis)]
#[case::mariadb_redis(Stores::MariadbRedis)]
#[case::sqlite_cluster(Stores::SqliteCluster)]
#[tokio::test(flavor = "multi_thread")]
async fn every_code_store(#[case] stores: Stores) {}

mod admin;
mod by_code;
mod deadlock;
mod docs;
mod errors;
mod example_client;
mod exports;
mod faults;
mod feed;
mod limits;
mod lost_answer;
mod lost_commit;
mod machine;
mod metrics;
mod order_file_bounds;
mod order_file_kinds;
mod order_files;
mod race;
mod redemption;
mod rotate;
mod rules;
mod sessions;
mod sms_accounts;
mod sms_captcha;
mod sms_confirm;
mod sms_ended;
mod sms_faults;
mod sms_login;
mod sms_machine;
mod sms_operations;
mod sms_send;
mod sms_trace;
mod tasks;
mod tenants;
mod tls;
mod two_servers;
mod visitor;
mod web_hooks;
