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
