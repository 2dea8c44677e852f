//! Redis: the commands of a seen-set, and of claims.

use super::{Contender, Duel, Message, Outcome, Source};
use babelqueue_guard::redis::aio::MultiplexedConnection;
use babelqueue_guard::redis::{self, Client, Cmd, Pipeline, Value, cmd};
use babelqueue_guard::store::redis::{RedisSettings, RedisStore};
use babelqueue_guard::{Guard, async_trait};

const RELEASE: &str = include_str!("../../../host/rust/src/store/redis/release.lua");
const RETENTION_MS: u64 = 14 * 24 * 60 * 60 * 1_000;
const LEASE_MS: u64 = 60_000;

pub(crate) async fn bench(source: &mut Source) -> Outcome {
    let Some(server) = test_servers::redis() else {
        eprintln!("skipped: no redis-server here");
        return Ok(());
    };
    let client = Client::open(server.url())?;
    let connection = client.get_multiplexed_async_connection().await?;
    let store = RedisStore::new(client, &RedisSettings::default())?;
    let seen = Duel {
        store: "Redis",
        mode: "seen-set",
        guard: &Guard::new(store.clone())?,
        raw: &Seen(connection.clone()),
    };
    let claims = Duel {
        mode: "claims",
        guard: &Guard::claiming(store)?,
        raw: &Claims(connection),
        ..seen
    };
    for duel in [seen, claims] {
        for in_flight in [1, 64] {
            source.duel(&duel, in_flight).await?;
        }
    }
    Ok(())
}

struct Seen(MultiplexedConnection);

#[async_trait(?Send)]
impl Contender for Seen {
    async fn cycle(&self, message: &Message) -> Outcome {
        let mut connection = self.0.clone();
        let mark = format!("raw:seen:{}", message.id);
        let seen: Value = get(&mark).query_async(&mut connection).await?;
        if seen != Value::Nil {
            return Err(format!("{mark}: {seen:?}").into());
        }
        let _: Value = set_mark(&mark).query_async(&mut connection).await?;
        Ok(())
    }
}

struct Claims(MultiplexedConnection);

#[async_trait(?Send)]
impl Contender for Claims {
    async fn cycle(&self, message: &Message) -> Outcome {
        let mut connection = self.0.clone();
        let (mark, lease) = (
            format!("raw:seen:{}", message.id),
            format!("raw:lease:{}", message.id),
        );
        let token = &message.id;
        let mut claim = Pipeline::new();
        claim.cmd("SET").arg(&lease).arg(token);
        claim.arg("NX").arg("PX").arg(LEASE_MS);
        claim.add_command(get(&lease));
        claim.cmd("PTTL").arg(&lease);
        claim.add_command(get(&mark));
        let claimed: Vec<Value> = claim.query_async(&mut connection).await?;
        if claimed.first() != Some(&Value::Okay) {
            return Err(format!("{lease}: {claimed:?}").into());
        }
        let mut complete = Pipeline::new();
        complete.add_command(set_mark(&mark));
        complete.cmd("EVAL").arg(RELEASE).arg(1);
        complete.arg(&lease).arg(token);
        let _: Vec<Value> = complete.query_async(&mut connection).await?;
        Ok(())
    }
}

fn get(key: &str) -> Cmd {
    redis::Cmd::get(key)
}

fn set_mark(key: &str) -> Cmd {
    let mut command = cmd("SET");
    command.arg(key).arg(1).arg("PX").arg(RETENTION_MS);
    command.arg("GET");
    command
}
