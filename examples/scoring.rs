//! A guessing game: however often a guess is scored, it gives one score and
//! counts as one attempt.
//!
//! The score is written so that twice is the same as once. Counting is not
//! like that, so the attempt is a step with a mark of its own, set before it
//! is counted: a crash between the two loses an attempt, and nothing ever
//! counts one twice. A guess for a game that nobody knows is settled and not
//! failed, for no redelivery would find the game.

use babelqueue_guard::{Context, Guard, MemoryStore, Processed};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a table of games, one of scores and a counter would be in a database.
#[derive(Default)]
struct Table {
    /// The number to be guessed in each game.
    games: BTreeMap<String, u32>,
    /// Points by game and player.
    scores: BTreeMap<(String, String), u32>,
    attempts: u32,
}

#[derive(Deserialize)]
struct Envelope {
    data: Guess,
}

#[derive(Deserialize)]
struct Guess {
    game: String,
    player: String,
    number: u32,
}

/// What a guess that was handled came to. None of these is worth a redelivery.
enum Scored {
    Points(u32),
    UnknownGame,
}

fn score(table: &mut Table, guess: Guess) -> Scored {
    let Some(number) = table.games.get(&guess.game) else {
        return Scored::UnknownGame;
    };
    let points = 10_u32.saturating_sub(number.abs_diff(guess.number));
    table.scores.insert((guess.game, guess.player), points);
    Scored::Points(points)
}

async fn handle(
    table: &Mutex<Table>,
    context: Context,
    body: &str,
    reply: Reply,
) -> Result<Scored, Box<dyn Error>> {
    let Envelope { data: guess } = serde_json::from_str(body)?;
    let scored = score(&mut lock(table), guess);
    if matches!(scored, Scored::Points(_)) && context.once("attempt").await? {
        lock(table).attempts += 1;
    }
    match reply {
        Reply::Sent => Ok(scored),
        Reply::Lost => Err("the player's connection broke".into()),
    }
}

/// Whether the player hears of the score, the last thing that a handler does.
enum Reply {
    Sent,
    Lost,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = MemoryStore::default();
    let guard = Guard::new(store.clone())?.with_steps(store);
    let table = Mutex::new(Table {
        games: BTreeMap::from([("fair".into(), 42)]),
        ..Table::default()
    });

    let ann = guess("guess-1", "fair", "ann", 40);
    deliver(&guard, &table, &ann, Reply::Lost).await?;
    deliver(&guard, &table, &ann, Reply::Lost).await?;
    deliver(&guard, &table, &ann, Reply::Sent).await?;
    deliver(&guard, &table, &ann, Reply::Sent).await?;

    println!("replayed by an operator, who has its mark removed:");
    guard.forget("guess-1").await?;
    deliver(&guard, &table, &ann, Reply::Sent).await?;

    println!("another guess, and one for a game that nobody knows:");
    let bob = guess("guess-2", "fair", "bob", 42);
    deliver(&guard, &table, &bob, Reply::Sent).await?;
    let lost = guess("guess-3", "unfair", "bob", 1);
    deliver(&guard, &table, &lost, Reply::Sent).await?;
    deliver(&guard, &table, &lost, Reply::Sent).await?;

    let table = lock(&table);
    for ((game, player), points) in &table.scores {
        println!("{game}: {player} has {points} points");
    }
    println!("attempts: {}", table.attempts);
    Ok(())
}

fn guess(id: &str, game: &str, player: &str, number: u32) -> String {
    serde_json::json!({
        "job": "urn:babel:games:guessed",
        "data": { "game": game, "player": player, "number": number },
        "meta": { "id": id },
    })
    .to_string()
}

async fn deliver(
    guard: &Guard,
    table: &Mutex<Table>,
    body: &str,
    reply: Reply,
) -> Result<(), babelqueue_guard::Error> {
    let processed = guard
        .process(body, async |context| {
            handle(table, context, body, reply).await
        })
        .await?;
    let id = processed.id().unwrap_or("(no id)");
    let attempts = lock(table).attempts;
    let became = match &processed {
        Processed::Ran {
            value: Scored::Points(points),
            ..
        } => format!("scored, {points} points"),
        Processed::Ran {
            value: Scored::UnknownGame,
            ..
        } => "settled: no such game".into(),
        Processed::Failed { error, .. } => format!("failed: {error}"),
        Processed::Skipped { .. } | Processed::Parked(_) => "skipped".into(),
    };
    println!("  {id}: {became:<39}attempts: {attempts}");
    Ok(())
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
