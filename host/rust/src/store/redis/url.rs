//! Addresses as people write them.

use super::client::{Kind, RedisClient};
use crate::settings::SettingError;
use redis::cluster::ClusterClientBuilder;
use redis::io::tcp::TcpSettings;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{Client, ConnectionInfo, IntoConnectionInfo};
use tokio::sync::Mutex;

#[cfg(feature = "redis-tls")]
use super::tls;

const SENTINEL_PORT: u16 = 26_379;

/// The parts of a URL that may name several servers.
struct Address<'u> {
    /// `redis` or `rediss`.
    scheme: &'static str,
    user: &'u str,
    hosts: Vec<&'u str>,
    path: &'u str,
    query: &'u str,
}

/// Whether a scheme is one of ours.
pub(crate) fn is_redis(scheme: &str) -> bool {
    let base = scheme.split('+').next().unwrap_or(scheme);
    plain_scheme(base).is_some()
}

fn plain_scheme(base: &str) -> Option<&'static str> {
    match base {
        "redis" | "valkey" => Some("redis"),
        "rediss" | "valkeys" => Some("rediss"),
        _ => None,
    }
}

/// The client for a URL, as [`RedisStore::connect`](super::RedisStore::connect)
/// documents them. No error contains a password.
pub(super) fn client(url: &str) -> Result<RedisClient, SettingError> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(bad("there is no :// in it"));
    };
    let (base, topology) = scheme.split_once('+').unwrap_or((scheme, ""));
    let scheme = plain_scheme(base).ok_or_else(|| {
        bad(format!(
            "{base:?} is none of redis, rediss, valkey and valkeys"
        ))
    })?;
    if rest.contains('#') {
        return Err(bad(
            "a # has no meaning here: certificates are always checked, against those of ?ca=FILE \
             if need be; in a password it is written %23",
        ));
    }
    let address = Address::parse(scheme, rest);
    match topology {
        "" => address.single(),
        "unix" => Ok(open(&format!("redis+unix://{rest}"))?.into()),
        "sentinel" => address.sentinel(),
        "cluster" => address.cluster(),
        other => Err(bad(format!(
            "{other:?} is none of cluster, sentinel and unix"
        ))),
    }
}

impl<'u> Address<'u> {
    fn parse(scheme: &'static str, rest: &'u str) -> Self {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        Self {
            scheme,
            user,
            hosts: hosts.split(',').collect(),
            path: path.trim_start_matches('/'),
            query,
        }
    }

    /// One host's URL.
    fn url(&self, host: &str, path: &str) -> String {
        let Self {
            scheme,
            user,
            query,
            ..
        } = self;
        format!("{scheme}://{user}@{host}/{path}?{query}")
    }

    fn single(&self) -> Result<RedisClient, SettingError> {
        let [host] = self.hosts[..] else {
            return Err(bad(
                "one server has one address; use redis+cluster:// or redis+sentinel:// for several",
            ));
        };
        Ok(open(&self.url(host, self.path))?.into())
    }

    fn cluster(&self) -> Result<RedisClient, SettingError> {
        if !matches!(self.path, "" | "0") {
            return Err(bad("a cluster has no databases, only 0"));
        }
        let urls: Vec<String> = self.hosts.iter().map(|host| self.url(host, "")).collect();
        let nodes = urls
            .iter()
            .map(|url| open(url))
            .collect::<Result<Vec<_>, _>>()?;
        let infos = nodes.iter().map(|node| node.get_connection_info().clone());
        let builder = ClusterClientBuilder::new(infos)
            // Moved slots are followed by the store.
            .retries(0)
            .tcp_settings(tcp());
        #[cfg(feature = "redis-tls")]
        let builder = match tls::certificates(&urls[0])? {
            Some(certificates) => builder.certs(certificates),
            None => builder,
        };
        let client = builder.build().map_err(refused)?;
        Ok(RedisClient {
            kind: Kind::Cluster {
                client: Box::new(client),
                nodes,
            },
            name: format!("redis cluster {}", self.hosts.join(",")),
        })
    }

    fn sentinel(&self) -> Result<RedisClient, SettingError> {
        let (master, database) = self.path.split_once('/').unwrap_or((self.path, ""));
        if master.is_empty() {
            return Err(bad(
                "the master's name is missing: redis+sentinel://sentinel:26379/NAME",
            ));
        }
        let urls: Vec<String> = self
            .hosts
            .iter()
            .map(|host| self.url(&with_port(host, SENTINEL_PORT), database))
            .collect();
        let infos = urls
            .iter()
            .map(|url| info(url))
            .collect::<Result<Vec<_>, _>>()?;
        let server = infos[0].redis_settings().clone();
        let sentinels = infos.into_iter().map(|info| info.addr().clone());
        let mut builder = SentinelClientBuilder::new(sentinels, master, SentinelServerType::Master)
            .map_err(refused)?
            .set_client_to_redis_db(server.db())
            .set_client_to_redis_protocol(server.protocol())
            .set_client_to_redis_tcp_settings(tcp());
        if let Some(user) = server.username() {
            builder = builder.set_client_to_redis_username(user);
        }
        if let Some(password) = server.password() {
            builder = builder.set_client_to_redis_password(password);
        }
        #[cfg(feature = "redis-tls")]
        if self.scheme == "rediss" {
            builder = builder
                .set_client_to_redis_tls_mode(redis::TlsMode::Secure)
                .set_client_to_sentinel_tls_mode(redis::TlsMode::Secure);
            if let Some(certificates) = tls::certificates(&urls[0])? {
                builder = builder
                    .set_client_to_redis_certificates(certificates.clone())
                    .set_client_to_sentinel_certificates(certificates);
            }
        }
        let client = builder.build().map_err(refused)?;
        Ok(RedisClient {
            kind: Kind::Sentinel(Box::new(Mutex::new(client))),
            name: format!("redis {master} by Sentinel {}", self.hosts.join(",")),
        })
    }
}

/// The client for one server's URL.
fn open(url: &str) -> Result<Client, SettingError> {
    let info = info(url)?;
    #[cfg(feature = "redis-tls")]
    if let Some(certificates) = tls::certificates(url)? {
        return Client::build_with_tls(info, certificates).map_err(refused);
    }
    Client::open(info).map_err(refused)
}

fn info(url: &str) -> Result<ConnectionInfo, SettingError> {
    let info = url.into_connection_info().map_err(refused)?;
    Ok(info.set_tcp_settings(tcp()))
}

fn tcp() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

fn with_port(host: &str, port: u16) -> String {
    let after_ipv6 = host.rsplit(']').next().unwrap_or(host);
    if after_ipv6.contains(':') {
        host.to_owned()
    } else {
        format!("{host}:{port}")
    }
}

#[allow(clippy::needless_pass_by_value, reason = "its place is in `map_err`")]
fn refused(error: redis::RedisError) -> SettingError {
    if cfg!(not(feature = "redis-tls")) && error.to_string().contains("TLS") {
        return bad("TLS needs this library's feature `redis-tls`");
    }
    bad(error.to_string())
}

pub(super) fn bad(problem: impl Into<String>) -> SettingError {
    SettingError::new("the store's URL", problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(url: &str) -> String {
        client(url).unwrap().name
    }

    #[test]
    fn a_store_is_called_by_its_address_without_the_password() {
        for (url, expected) in [
            ("redis://localhost", "redis localhost:6379"),
            ("valkey://u:secret@h:7000/3", "redis h:7000"),
            ("redis://:secret@[::1]:7000", "redis ::1:7000"),
            ("redis+unix:///run/redis.sock?db=2", "redis /run/redis.sock"),
            ("redis+cluster://u:secret@a:1,b:2", "redis cluster a:1,b:2"),
            (
                "redis+sentinel://:secret@a,b:2/orders/3",
                "redis orders by Sentinel a,b:2",
            ),
        ] {
            assert_eq!(name(url), expected, "{url}");
        }
    }

    #[test]
    fn credentials_and_database_reach_the_client() {
        let client = client("redis://user:p%40ss@h:7000/3").unwrap();
        let Kind::Single(client) = client.kind else {
            panic!("not a single server");
        };
        let settings = client.get_connection_info().redis_settings();
        assert_eq!(settings.username(), Some("user"));
        assert_eq!(settings.password(), Some("p@ss"));
        assert_eq!(settings.db(), 3);
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_repeating_a_password() {
        for bad in [
            "redis",
            "redis:h",
            "redis://",
            "redis://secret@h:99999",
            "redis://u:secret@h/x",
            "redis://u:secret@a,b",
            "redis+cluster://u:secret@h/1",
            "redis+sentinel://u:secret@h",
            "redis+other://u:secret@h",
            "http://u:secret@h",
            "rediss://u:secret@h/#insecure",
            "redis://u:#secret@h",
        ] {
            let error = client(bad).unwrap_err().to_string();
            assert!(error.starts_with("the store's URL: "), "{bad}: {error}");
            assert!(!error.contains("secret"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_sentinel_has_a_port_of_its_own() {
        assert_eq!(with_port("h", 26_379), "h:26379");
        assert_eq!(with_port("h:1", 26_379), "h:1");
        assert_eq!(with_port("[::1]", 26_379), "[::1]:26379");
        assert_eq!(with_port("[::1]:1", 26_379), "[::1]:1");
    }
}
