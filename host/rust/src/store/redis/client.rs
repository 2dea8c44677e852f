//! Clients of the `redis` crate, and the connections that they make.

use super::settings::Timeouts;
use redis::aio::MultiplexedConnection;
use redis::cluster::{ClusterClient, ClusterConfig};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{
    MultipleNodeRoutingInfo, Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr,
};
use redis::sentinel::SentinelClient;
use redis::{
    AsyncConnectionConfig, Client, ErrorKind, Pipeline, RedisConnectionInfo, RedisError,
    RedisResult, Value, from_redis_value,
};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How often a command follows a slot that moves from node to node.
const REDIRECTIONS: usize = 8;

/// A client of the `redis` crate: one for a single server, one for a Sentinel
/// or one for a cluster. All have a `From`.
///
/// The timeouts are those of [`RedisSettings`](super::RedisSettings). A
/// cluster client should be built with `retries(0)`: the store follows moved
/// slots by itself, and a client that repeats a command by itself may set a
/// step's mark, lose the reply, and find the step done.
pub struct RedisClient {
    pub(super) kind: Kind,
    /// How errors call it; without a password.
    pub(super) name: String,
}

pub(super) enum Kind {
    Single(Box<Client>),
    Sentinel(Box<Mutex<SentinelClient>>),
    Cluster {
        client: Box<ClusterClient>,
        /// Where it begins, if that is known.
        nodes: Vec<Client>,
    },
}

impl fmt::Debug for RedisClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisClient").field(&self.name).finish()
    }
}

impl From<Client> for RedisClient {
    fn from(client: Client) -> Self {
        let name = format!("redis {}", client.get_connection_info().addr());
        Self {
            kind: Kind::Single(Box::new(client)),
            name,
        }
    }
}

impl From<SentinelClient> for RedisClient {
    fn from(client: SentinelClient) -> Self {
        Self {
            kind: Kind::Sentinel(Box::new(Mutex::new(client))),
            name: "redis by Sentinel".into(),
        }
    }
}

impl From<ClusterClient> for RedisClient {
    fn from(client: ClusterClient) -> Self {
        Self {
            kind: Kind::Cluster {
                client: Box::new(client),
                nodes: Vec::new(),
            },
            name: "redis cluster".into(),
        }
    }
}

impl RedisClient {
    /// Whether a connection may be encrypted, as far as can be told.
    #[cfg(feature = "redis-tls")]
    pub(super) fn may_use_tls(&self) -> bool {
        match &self.kind {
            Kind::Single(client) => matches!(
                client.get_connection_info().addr(),
                redis::ConnectionAddr::TcpTls { .. }
            ),
            Kind::Sentinel(_) | Kind::Cluster { .. } => true,
        }
    }

    pub(super) async fn connect(&self, timeouts: Timeouts) -> RedisResult<Connection> {
        match &self.kind {
            Kind::Single(client) => Ok(Connection::Single(connect(client, timeouts).await?)),
            Kind::Sentinel(sentinel) => {
                let resolve = async { sentinel.lock().await.async_get_client().await };
                let master = timeout(timeouts.connect, resolve)
                    .await
                    .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
                Ok(Connection::Single(connect(&master, timeouts).await?))
            }
            Kind::Cluster { client, nodes } => {
                let config = ClusterConfig::new()
                    .set_connection_timeout(timeouts.connect)
                    .set_response_timeout(timeouts.response);
                let connected = client.get_async_connection_with_config(config).await;
                if connected.as_ref().is_err_and(is_bad_password) {
                    for node in nodes {
                        authenticate(node, &timeouts.config()).await?;
                    }
                }
                Ok(Connection::Cluster(connected?))
            }
        }
    }
}

async fn connect(client: &Client, timeouts: Timeouts) -> RedisResult<MultiplexedConnection> {
    let config = timeouts.config();
    let connected = client
        .get_multiplexed_async_connection_with_config(&config)
        .await;
    match connected {
        Err(error) if is_bad_password(&error) => {
            authenticate(client, &config).await?;
            client
                .get_multiplexed_async_connection_with_config(&config)
                .await
        }
        connected => connected,
    }
}

/// Whether a server is said to have refused the password. A cluster's client
/// says so in its text alone.
pub(super) fn is_bad_password(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || error
            .detail()
            .is_some_and(|detail| detail.contains("AuthenticationFailed"))
}

/// Asks again why a password is refused: the client's error hides what the
/// server said, which may be that it has too many clients.
async fn authenticate(client: &Client, config: &AsyncConnectionConfig) -> RedisResult<()> {
    let info = client.get_connection_info();
    let credentials = info.redis_settings();
    let anonymous = RedisConnectionInfo::default().set_skip_set_lib_name();
    let mut connection = Client::open(info.clone().set_redis_settings(anonymous))?
        .get_multiplexed_async_connection_with_config(config)
        .await?;
    let mut command = redis::cmd("AUTH");
    command.arg(credentials.username());
    command.arg(credentials.password());
    command.query_async(&mut connection).await
}

/// An open connection, shared by its clones.
#[derive(Clone)]
pub(super) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// Whom commands are for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    /// Whoever has this key.
    Key(&'a str),
    /// A node of a cluster, as [`Connection::nodes`] names it.
    Node(&'a str),
}

impl Connection {
    /// Sends commands to one server, in one round trip, and returns a reply
    /// for each, which may be an error if the pipeline is to ignore them.
    pub(super) async fn send(
        &mut self,
        target: Target<'_>,
        commands: &Pipeline,
    ) -> RedisResult<Vec<Value>> {
        match self {
            Self::Single(connection) => commands.query_async(connection).await,
            Self::Cluster(connection) => send_to_cluster(connection, target, commands).await,
        }
    }

    /// All who hold keys, in order.
    pub(super) async fn nodes(&mut self) -> RedisResult<Vec<String>> {
        let connection = match self {
            Self::Single(_) => return Ok(vec![String::new()]),
            Self::Cluster(connection) => connection,
        };
        let masters = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
        let replies = connection
            .route_command(redis::cmd("PING"), masters)
            .await?;
        let replies: BTreeMap<String, Value> = from_redis_value(replies)?;
        Ok(replies.into_keys().collect())
    }
}

/// Sends commands to the node that has the key, which may be on the move. A
/// command that was redirected has not been executed.
async fn send_to_cluster(
    connection: &mut ClusterConnection,
    target: Target<'_>,
    commands: &Pipeline,
) -> RedisResult<Vec<Value>> {
    let mut route = match target {
        Target::Key(key) => {
            SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master))
        }
        Target::Node(address) => by_address(address).ok_or_else(|| {
            let text = "no address of a cluster's node";
            RedisError::from((ErrorKind::InvalidClientConfig, text))
        })?,
    };
    let mut asking = false;
    let mut redirections = 0;
    loop {
        let error = match send_to_node(connection, route, commands, asking).await {
            Err(error) if redirections < REDIRECTIONS => error,
            sent => return sent,
        };
        let redirection = error.redirect_node().and_then(|(node, _)| by_address(node));
        let Some(redirection) = redirection else {
            return Err(error);
        };
        route = redirection;
        asking = error.code() == Some("ASK");
        redirections += 1;
    }
}

fn by_address(address: &str) -> Option<SingleNodeRoutingInfo> {
    let (host, port) = address.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some(SingleNodeRoutingInfo::ByAddress {
        host: host.to_owned(),
        port: port.parse().ok()?,
    })
}

async fn send_to_node(
    connection: &mut ClusterConnection,
    route: SingleNodeRoutingInfo,
    commands: &Pipeline,
    asking: bool,
) -> RedisResult<Vec<Value>> {
    if !asking {
        return connection
            .route_pipeline(commands.clone(), 0, commands.len(), route)
            .await;
    }
    // Each ASKING covers one command; sent together, nobody else's command can
    // come between.
    let mut pairs = Pipeline::with_capacity(2 * commands.len());
    for command in commands.cmd_iter() {
        pairs.cmd("ASKING");
        pairs.add_command(command.clone());
    }
    let count = pairs.len();
    let replies = connection.route_pipeline(pairs, 0, count, route).await?;
    Ok(replies.into_iter().skip(1).step_by(2).collect())
}
