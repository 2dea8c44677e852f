//! One connection, opened when it is needed, shared by all who send, and
//! dropped when it will not do any more.

use super::client::{Connection, Kind, RedisClient, Target};
use super::reply::{Failure, is_elsewhere};
use super::settings::Timeouts;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use redis::{Cmd, Pipeline, RedisError, RedisResult, Value};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Attempt = Shared<BoxFuture<'static, RedisResult<Connection>>>;

/// The connection is dropped after every failure to send or to be answered in
/// time, and after a reply by which the server is not the one to write to; the
/// next request opens another. (The crate's own manager keeps it in the last
/// two cases, and answers the first request after an outage with the error of
/// its last attempt to reconnect.)
pub(super) struct Link {
    client: RedisClient,
    timeouts: Timeouts,
    slot: Mutex<Slot>,
}

#[derive(Default)]
struct Slot {
    /// Tells the attempts apart.
    number: u64,
    attempt: Option<Attempt>,
}

/// What a request may do about a lost reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Doing it twice is like doing it once: sent again if the connection
    /// turns out to have been closed, as an idle one is by a restart.
    Once,
    /// Sent once.
    Never,
}

impl Link {
    pub(super) fn new(client: RedisClient, timeouts: Timeouts) -> Arc<Self> {
        Arc::new(Self {
            client,
            timeouts,
            slot: Mutex::default(),
        })
    }

    /// The server's name for errors.
    pub(super) fn name(&self) -> &str {
        &self.client.name
    }

    /// Whether two keys may be on two servers.
    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.client.kind, Kind::Cluster { .. })
    }

    /// Sends commands to one server, in one round trip. Each has its reply,
    /// which may be an error.
    pub(super) async fn send<const N: usize>(
        self: &Arc<Self>,
        target: Target<'_>,
        commands: [Cmd; N],
        repeat: Repeat,
    ) -> Result<[Value; N], Failure> {
        let mut pipeline = Pipeline::with_capacity(N);
        pipeline.ignore_errors();
        for command in commands {
            pipeline.add_command(command);
        }
        let replies = match self.send_once(target, &pipeline).await {
            Err(Failure::Lost(error))
                if repeat == Repeat::Once && error.is_connection_dropped() =>
            {
                self.send_once(target, &pipeline).await
            }
            sent => sent,
        }?;
        <[Value; N]>::try_from(replies).map_err(|replies| {
            let text = format!("{} replies to {N} commands", replies.len());
            Failure::Lost(io::Error::new(io::ErrorKind::InvalidData, text).into())
        })
    }

    /// All servers that hold keys, as [`Target::Node`] takes them.
    pub(super) async fn nodes(self: &Arc<Self>) -> Result<Vec<String>, Failure> {
        let (number, mut connection) = self.connection().await?;
        connection.nodes().await.map_err(|error| {
            self.drop_connection(number);
            Failure::Lost(error)
        })
    }

    async fn send_once(
        self: &Arc<Self>,
        target: Target<'_>,
        commands: &Pipeline,
    ) -> Result<Vec<Value>, Failure> {
        let (number, mut connection) = self.connection().await?;
        match connection.send(target, commands).await {
            Ok(replies) => {
                let elsewhere = |reply: &Value| match reply {
                    Value::ServerError(refusal) => is_elsewhere(refusal),
                    _ => false,
                };
                if replies.iter().any(elsewhere) {
                    self.drop_connection(number);
                }
                Ok(replies)
            }
            Err(error) => {
                self.drop_connection(number);
                Err(Failure::Lost(error))
            }
        }
    }

    /// The open connection, or a new one; all who wait share one attempt.
    async fn connection(self: &Arc<Self>) -> Result<(u64, Connection), Failure> {
        let (number, attempt) = {
            let mut slot = self.slot();
            match &slot.attempt {
                Some(attempt) => (slot.number, attempt.clone()),
                None => {
                    slot.number += 1;
                    let attempt = self.attempt(slot.number);
                    slot.attempt = Some(attempt.clone());
                    (slot.number, attempt)
                }
            }
        };
        match attempt.await {
            Ok(connection) => Ok((number, connection)),
            Err(error) => {
                self.drop_connection(number);
                Err(Failure::Unreachable(error))
            }
        }
    }

    /// Connects in a task of its own: an attempt that nobody waits for any
    /// more goes on, and a failure is not kept for whoever comes next.
    fn attempt(self: &Arc<Self>, number: u64) -> Attempt {
        let link = self.clone();
        let connecting = tokio::spawn(async move {
            let connected = link.client.connect(link.timeouts).await;
            if connected.is_err() {
                link.drop_connection(number);
            }
            connected
        });
        async move {
            connecting
                .await
                .unwrap_or_else(|error| Err(RedisError::from(io::Error::other(error))))
        }
        .boxed()
        .shared()
    }

    /// Makes the next request open a connection, unless another one has done
    /// so already. Requests in flight end by themselves.
    fn drop_connection(&self, number: u64) {
        let mut slot = self.slot();
        if slot.number == number {
            slot.attempt = None;
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
