//! The kiosk as its own server, in the demo: the same server as everywhere, in this process, with made-up bookings.

use anyhow::Context;
use guidepost_server::{Config, DemoLink, Running};
use std::net::SocketAddr;
use std::path::Path;
use tempfile::TempDir;
use wire::{OrderNo, Secret};

/// The server in this process and its bookings.
#[derive(Debug)]
pub(crate) struct BundledServer {
    running: Running,
    /// Gone with the app, unless the data was to stay.
    _data: Option<TempDir>,
}

impl BundledServer {
    /// Starts it on a free port of this machine, its database in `data` or in a folder that is gone with the app.
    ///
    /// # Errors
    /// Where the folder cannot be written, or holds a database already.
    pub(crate) async fn start(data: Option<&Path>) -> anyhow::Result<Self> {
        let (folder, own) = match data {
            Some(folder) => {
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("the data folder {} cannot be made", folder.display()))?;
                (folder.to_owned(), None)
            }
            None => {
                let own = tempfile::Builder::new()
                    .prefix("guidepost-demo-")
                    .tempdir()
                    .context("no folder for the demo's data")?;
                (own.path().to_owned(), Some(own))
            }
        };
        let running =
            guidepost_server::start(Config::demo_in(&folder)).await.context("the demo's server cannot start")?;
        Ok(Self { running, _data: own })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// The one-time link of the first guide.
    pub(crate) fn guide_link(&self) -> Option<&Secret> {
        self.running.demo()?.guides.first().map(|guide| &guide.url)
    }

    /// The one-time links of the other guides: the way back in after signing out.
    pub(crate) fn other_guide_links(&self) -> impl Iterator<Item = &DemoLink> {
        self.running.demo().into_iter().flat_map(|demo| demo.guides.iter().skip(1))
    }

    /// The visitors whose pages can be opened, with their orders.
    pub(crate) fn visitors(&self) -> impl Iterator<Item = (String, OrderNo)> {
        self.visitor_links().filter_map(|visitor| Some((visitor.name.clone(), visitor.order_no.clone()?)))
    }

    /// The visitors' one-time links as they were made at the start.
    pub(crate) fn visitor_links(&self) -> impl Iterator<Item = &DemoLink> {
        self.running.demo().into_iter().flat_map(|demo| &demo.visitors)
    }

    /// A fresh one-time link to an order's page.
    ///
    /// # Errors
    /// For an order that the demo does not have.
    pub(crate) async fn visitor_link(&self, order_no: &OrderNo) -> anyhow::Result<Secret> {
        self.running.visitor_link(order_no).await
    }

    /// Finishes what is in flight and ends.
    pub(crate) async fn stop(self) {
        if let Err(error) = self.running.stop().await {
            tracing::warn!(%error, "the demo's server had ended with a fault");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_types::Outcome;
    use crate::kiosk::{Backing, Kiosk};
    use crate::server_client::{Limits, ServerClient};
    use crate::session::SignedIn;
    use crate::settings::SettingsStore;
    use crate::testing::{Desk, FakeServer, incoming, losing_an_answer, tls};
    use wire::api::Entry;

    async fn json(request: reqwest::RequestBuilder) -> serde_json::Value {
        let body = request.send().await.unwrap().bytes().await.unwrap();
        serde_json::from_slice::<serde_json::Value>(&body).unwrap()["data"].take()
    }

    /// The code that the order's visitor sees.
    async fn verify_code(server: &BundledServer, order_no: &OrderNo) -> String {
        let (http, base) = (reqwest::Client::new(), format!("http://{}", server.address()));
        let link = server.visitor_link(order_no).await.unwrap();
        let token = link.expose().split_once("#sign-in=").unwrap().1;
        let session =
            json(http.post(format!("{base}/api/auth/sign-in-link")).json(&serde_json::json!({"token": token}))).await;
        let code = json(
            http.get(format!("{base}/app-api/team/booking/booking/verify-code?orderNo={order_no}"))
                .bearer_auth(session["token"].as_str().unwrap()),
        );
        code.await["verifyCode"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn the_demo_has_a_guide_with_tasks_and_visitors_whose_links_are_made_anew() {
        tls();
        let server = BundledServer::start(None).await.unwrap();
        let folder = server._data.as_ref().unwrap().path().to_owned();
        let address = format!("http://{}", server.address());
        let guide = server.guide_link().unwrap().clone();
        let kiosk = Kiosk::start(&address, SettingsStore::open(None), Backing::Demo(Box::new(server)), || 0).unwrap();
        kiosk.sign_in(guide.expose()).await.unwrap();
        let caller = kiosk.caller().unwrap();
        let tasks = kiosk.client.tasks(&caller).await.unwrap();
        assert!(!tasks.is_empty());
        assert!(!kiosk.client.task_orders(&caller, &tasks[0].task_no).await.unwrap().is_empty());
        let info = kiosk.info().await;
        assert!(info.demo && info.clock_offset > 0);
        let order_no = &info.visitor_pages[0].order_no;
        let links = [kiosk.visitor_link(order_no).await.unwrap(), kiosk.visitor_link(order_no).await.unwrap()];
        assert_ne!(links[0], links[1], "a link works once");
        assert!(kiosk.visitor_link(&OrderNo::parse("NOBODYS").unwrap()).await.is_err());
        // A visitor is no guide, and hears it from the server.
        let no = kiosk.sign_in(links[0].expose()).await.unwrap_err();
        assert!(matches!(no, crate::host_types::CommandError::Refused { .. }), "{no:?}");
        assert!(kiosk.session.current().is_some(), "who was signed in stays so");
        kiosk.close().await;
        assert!(!folder.exists(), "nothing is left of the demo");
    }

    #[tokio::test]
    async fn the_demo_does_not_touch_a_database_that_is_in_use() {
        let folder = tempfile::tempdir().unwrap();
        BundledServer::start(Some(folder.path())).await.unwrap().stop().await;
        assert!(BundledServer::start(Some(folder.path())).await.is_err());
    }

    #[tokio::test]
    async fn the_server_has_redeemed_and_the_answer_was_lost() {
        tls();
        let server = BundledServer::start(None).await.unwrap();
        let (_, order_no) = server.visitors().next().unwrap();
        let code = verify_code(&server, &order_no).await;
        let client = ServerClient::new(&losing_an_answer(server.address()).await, Limits::default()).unwrap();
        let caller = crate::server_client::Caller { token: None, locale: crate::host_types::Locale::ZhCn };
        let token = Secret::new(server.guide_link().unwrap().expose().split_once("#sign-in=").unwrap().1);
        let session = client.sign_in_by_link(&caller, token).await.unwrap();
        let mut desk = Desk::before(FakeServer::open().await, client, |_| {}).await;
        desk.session.begin(SignedIn { token: session.token.unwrap(), guide: session.name, keep: false });
        for moment_ago in [false, true] {
            desk.inbox.scanned(incoming(order_no.as_str(), &code, Entry::Scan));
            let outcome = desk.outcome().await;
            assert!(
                matches!(&outcome, Outcome::Admitted { moment_ago: ago, .. } if *ago == moment_ago),
                "first the rightful admission, then its own repeat: {outcome:?}"
            );
        }
        server.stop().await;
    }
}
