//! Certificates for servers with TLS: an authority of the tests' own, a server
//! on this machine, and a client, as PEM files in a folder.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::fs;
use std::path::PathBuf;

/// The files `ca.pem`, `server.pem`, `server.key`, `client.pem` and
/// `client.key`, until it is dropped.
#[derive(Debug)]
pub struct Certificates(tempfile::TempDir);

impl Certificates {
    /// Makes all of them anew.
    ///
    /// # Panics
    ///
    /// If they cannot be made or written.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it writes files")]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: String| {
            fs::write(folder.path().join(name), text).expect("a written file");
        };

        let mut authority = CertificateParams::default();
        // Without names of their own, a certificate would look like its issuer.
        authority
            .distinguished_name
            .push(DnType::CommonName, "authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        write(
            "ca.pem",
            authority.self_signed(&key).expect("an authority").pem(),
        );
        let authority = Issuer::new(authority, key);

        for (name, names) in [
            ("server", &["localhost", "127.0.0.1"][..]),
            ("client", &["client"]),
        ] {
            let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
            let mut params = CertificateParams::new(names).expect("names");
            params.distinguished_name.push(DnType::CommonName, name);
            let key = KeyPair::generate().expect("a key");
            let certificate = params.signed_by(&key, &authority).expect("a certificate");
            write(&format!("{name}.pem"), certificate.pem());
            write(&format!("{name}.key"), key.serialize_pem());
        }
        Self(folder)
    }

    /// One of the files.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The arguments by which `redis-server` uses TLS on this port.
    #[must_use]
    pub fn redis_arguments(&self, port: u16, clients: bool) -> Vec<String> {
        let file = |name| self.file(name).display().to_string();
        [
            ("--tls-port", port.to_string()),
            ("--tls-ca-cert-file", file("ca.pem")),
            ("--tls-cert-file", file("server.pem")),
            ("--tls-key-file", file("server.key")),
            (
                "--tls-auth-clients",
                if clients { "yes" } else { "no" }.to_owned(),
            ),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
    }
}
