//! Workers killed with SIGKILL wherever they are: in the end, each effect has
//! happened once.

use super::{Shop, body};
use crate::child;
use babelqueue_guard::component::{Component, Limits};
use babelqueue_guard::sqlx::Error;
use babelqueue_guard::transaction::{Running, TransactionGuard};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

const MESSAGES: usize = 1_000;
const WORKERS: usize = 4;
const KILLS: usize = 40;

/// What workers share beside the database: the component's native code, so
/// that none need compile it, and a list of the handlers that have begun.
pub(super) struct Folder(PathBuf);

impl Folder {
    fn prepare(path: &Path) -> Self {
        let code = Component::plain().unwrap().precompiled().unwrap();
        std::fs::write(path.join("plain"), code).unwrap();
        std::fs::write(path.join("begun"), "").unwrap();
        Self(path.to_owned())
    }

    fn component(&self) -> Component {
        let code = std::fs::read(self.0.join("plain")).unwrap();
        // SAFETY: written by the process that has started this one, in a
        // folder that nobody else may write to.
        unsafe { Component::from_precompiled(&code, Limits::TRUSTED) }.unwrap()
    }

    fn begin(&self) -> std::fs::File {
        std::fs::OpenOptions::new()
            .append(true)
            .open(self.0.join("begun"))
            .unwrap()
    }

    fn begun(&self) -> usize {
        std::fs::read(self.0.join("begun")).unwrap().len()
    }
}

/// Starts workers and kills them one after the other, then lets them finish.
/// `disturb` is called between two kills.
pub(super) fn torment(test: &str, url: &str, mut disturb: impl FnMut(usize)) {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::prepare(place.path());
    let argument = format!("{}\n{url}", place.path().display());
    let start = || child::spawn(test, &argument);
    let mut workers: Vec<Child> = (0..WORKERS).map(|_| start()).collect();
    let mut random = u64::from(std::process::id()) | 1;
    for kill in 0..KILLS {
        // Some die while they start, most in the middle of their work.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        sleep(Duration::from_millis(20 + (random >> 33) % 120));
        let mut worker = std::mem::replace(&mut workers[kill % WORKERS], start());
        worker.kill().unwrap();
        worker.wait().unwrap();
        disturb(kill);
    }
    for worker in workers {
        child::output(worker);
    }
    let begun = folder.begun();
    println!("{MESSAGES} messages, {KILLS} kills, {begun} handlers begun");
    assert!(begun > MESSAGES, "no handler was killed half-way");
}

/// What a worker does: delivers every message to itself, in an order of its
/// own, until each has been acknowledged.
pub(super) async fn work<S: Shop>(store: S::Store, folder: &Folder) {
    let guard = TransactionGuard::with_component(folder.component(), store);
    let mut begun = folder.begin();
    let offset = std::process::id() as usize % MESSAGES;
    for n in 0..MESSAGES {
        let id = ((n * 7 + offset) % MESSAGES).to_string();
        let envelope = body(&id);
        let handler = async |mut run: Running<'static, S::Store>| {
            (&begun).write_all(b".").unwrap();
            S::pay(&mut run, &id).await?;
            tokio::time::sleep(Duration::from_millis(3)).await;
            Ok::<_, Error>(run.done(()))
        };
        loop {
            match guard.process(&envelope, handler).await {
                Ok(processed) if processed.acknowledge() => break,
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error.class(), "unavailable", "{error}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }
    begun.flush().unwrap();
}

/// The folder and the store's URL, in a worker's own process.
pub(super) fn arguments() -> Option<(Folder, String)> {
    let argument = child::argument()?;
    let (folder, url) = argument.split_once('\n')?;
    Some((Folder(folder.into()), url.to_owned()))
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use super::super::Shop;
    use super::super::sqlite::File;
    use babelqueue_guard::store::sqlite::{SqliteSettings, SqliteStore};

    #[tokio::test(flavor = "multi_thread")]
    async fn killed_workers_pay_once() {
        let Some(file) = File::new().await else {
            return;
        };
        let url = file.url();
        super::torment("transaction::crashes::sqlite::worker", &url, |_| {});
        assert_eq!(file.payments().await, super::MESSAGES);
    }

    #[tokio::test]
    async fn worker() {
        let Some((folder, url)) = super::arguments() else {
            return;
        };
        let store = SqliteStore::connect(&url, &SqliteSettings::default())
            .await
            .unwrap();
        super::work::<File>(store, &folder).await;
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use super::super::Shop;
    use super::super::postgres::Server;
    use babelqueue_guard::Inventory;
    use babelqueue_guard::store::postgres::{PostgresSettings, PostgresStore};
    use std::time::Duration;

    #[tokio::test(flavor = "multi_thread")]
    async fn killed_workers_pay_once() {
        let Some(server) = Server::new().await else {
            return;
        };
        let url = server.0.url();
        super::torment("transaction::crashes::postgres::worker", &url, |_| {});
        assert_eq!(server.payments().await, super::MESSAGES);
    }

    /// The server crashes too, and recovers from its log.
    #[tokio::test(flavor = "multi_thread")]
    async fn workers_and_a_server_that_are_killed_pay_once() {
        let Some(mut server) = test_servers::Postgres::start(&["fsync=on"]) else {
            return;
        };
        let url = server.url("postgres");
        let store = PostgresStore::connect(&url, &PostgresSettings::default())
            .await
            .unwrap();
        store.migrate().await.unwrap();
        server.sql("postgres", "CREATE TABLE payments (order_id text)");
        super::torment("transaction::crashes::postgres::worker", &url, |kill| {
            if kill % 10 == 5 {
                server.kill();
                server.restart();
            }
        });
        let paid = "SELECT count(*), count(DISTINCT order_id) FROM payments";
        let expected = format!("{0}|{0}", super::MESSAGES);
        assert_eq!(server.sql("postgres", paid), expected);
    }

    #[tokio::test]
    async fn worker() {
        let Some((folder, url)) = super::arguments() else {
            return;
        };
        let store = loop {
            match PostgresStore::connect(&url, &PostgresSettings::default()).await {
                Ok(store) => break store,
                // It has been killed, and is not back yet.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        super::work::<Server>(store, &folder).await;
    }
}
