//! What a rig is made of, as its command line says.

use babelqueue_guard::settings::LeaseLength;
use babelqueue_guard::store::url::UrlSettings;
use clap::{Args, ValueEnum, value_parser};
use std::fmt;
use std::time::Duration;

/// What guards the effect (contract, sections 2, 3 and 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    Seen,
    Claim,
    Transaction,
}

/// Which store the workers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreKind {
    Redis,
    Postgres,
    Sqlite,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) store: StoreKind,
    /// Different messages
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u32).range(1..))]
    pub(crate) messages: u32,
    /// How often the queue delivers each message of its own accord
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..))]
    pub(crate) copies: u32,
    /// Worker processes
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u16).range(1..))]
    pub(crate) workers: u16,
    /// Deliveries that a worker has in hand at a time
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u16).range(1..))]
    pub(crate) jobs: u16,
    /// Workers killed for each thousand deliveries
    #[arg(long, default_value_t = 20)]
    pub(crate) kills: u32,
    /// How often the server is killed or ended, and started again
    #[arg(long, default_value_t = 2)]
    pub(crate) restarts: u32,
    /// How often the server is stopped where it stands, and let go on
    #[arg(long, default_value_t = 2)]
    pub(crate) pauses: u32,
    /// Length of a lease in milliseconds
    #[arg(long, default_value_t = 2_000, value_parser = value_parser!(u64).range(1..))]
    pub(crate) lease: u64,
    /// What the order, the faults and the handlers are drawn from; how they
    /// fall together is the machine's. Another one each time unless set
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

impl Settings {
    /// Those of the store, the same for everybody who opens it.
    pub(crate) fn of_store(lease: u64) -> Result<UrlSettings, Box<dyn std::error::Error>> {
        let mut settings = UrlSettings::default();
        settings.lease = LeaseLength::of(Duration::from_millis(lease))?;
        Ok(settings)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seen => "seen",
            Self::Claim => "claim",
            Self::Transaction => "transaction",
        })
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redis => "redis",
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        })
    }
}
