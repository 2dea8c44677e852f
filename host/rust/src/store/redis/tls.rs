//! Certificates for `rediss://`.

use super::url::bad;
use crate::settings::SettingError;
use redis::{ClientTlsConfig, RedisError, TlsCertificates, parse_redis_url};
use rustls::crypto::{CryptoProvider, ring};
use std::error::Error;
use std::io;
use std::sync::Arc;

/// Sees to it that rustls has its cryptography, without which connecting would
/// panic. What the program has chosen itself stays.
pub(super) fn provide() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have been quicker, and that is all right.
        let _ = ring::default_provider().install_default();
    }
}

/// Whether one side does not accept the other's certificate.
pub(super) fn is_mistrust(error: &RedisError) -> bool {
    // The client keeps what it got from the socket in an `Arc`.
    let tls = error
        .source()
        .and_then(|source| source.downcast_ref::<Arc<dyn Error + Send + Sync>>())
        .and_then(|source| source.downcast_ref::<io::Error>())
        .and_then(io::Error::get_ref)
        .and_then(|source| source.downcast_ref::<rustls::Error>());
    matches!(
        tls,
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::AlertReceived(_))
    )
}

/// The certificates that a URL names, if it does.
pub(super) fn certificates(url: &str) -> Result<Option<TlsCertificates>, SettingError> {
    let Some(url) = parse_redis_url(url).filter(|url| url.scheme() == "rediss") else {
        return Ok(None);
    };
    let file = |name: &str| {
        let path = url.query_pairs().find(|(option, _)| option == name);
        path.map(|(_, path)| {
            std::fs::read(&*path).map_err(|error| bad(format!("{name}={path}: {error}")))
        })
        .transpose()
    };
    let client_tls = match (file("cert")?, file("key")?) {
        (Some(client_cert), Some(client_key)) => Some(ClientTlsConfig {
            client_cert,
            client_key,
        }),
        (None, None) => None,
        _ => return Err(bad("a client certificate needs both cert= and key=")),
    };
    let root_cert = file("ca")?;
    Ok(
        (client_tls.is_some() || root_cert.is_some()).then_some(TlsCertificates {
            client_tls,
            root_cert,
        }),
    )
}
