//! `demo`: the guard at work, for those who see it for the first time.

use crate::args::StoreArgs;
use crate::exit::{Failure, Status};
use anstyle::{AnsiColor, Style};
use babelqueue_guard::{Delivery, Guard, Mark, Processed};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// Watch the guard decide over real envelopes: begin here
///
/// A handler charges orders; some messages come twice, one handler fails, one
/// message has no id. Each delivery is a line: the message, the decision, why,
/// and how many charges have been made so far. Nothing is left in the store.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    store: StoreArgs,
}

impl Args {
    pub async fn run(self) -> Result<Status, Failure> {
        let store = self.store.open().await?;
        let mut show = Show {
            plain: Guard::new(store.clone())?,
            claiming: Guard::claiming(store)?,
            effects: AtomicU64::new(0),
            deliveries: 0,
            skipped: 0,
        };
        let orders = [1042, 1043, 1044].map(Message::with_id);
        let result = show.scenes(&orders, self.store.kind()).await;
        let mut cleared = Ok(());
        for order in &orders {
            cleared = cleared.and(show.plain.forget(&order.id).await);
        }
        result?;
        cleared?;
        show.totals()?;
        Ok(Status::Success)
    }
}

struct Message {
    name: String,
    id: String,
    body: Vec<u8>,
}

impl Message {
    /// A message as a producer sends it, with an id of its own in each demo.
    fn with_id(order: u32) -> Self {
        let id = uuid::Uuid::new_v4().to_string();
        let mut message = Self::without_id(order);
        message.body = envelope(order, Some(&id));
        message.id = id;
        message
    }

    fn without_id(order: u32) -> Self {
        Self {
            name: format!("order {order}"),
            id: String::new(),
            body: envelope(order, None),
        }
    }
}

fn envelope(order: u32, id: Option<&str>) -> Vec<u8> {
    let id = id.map_or_else(String::new, |id| format!(r#""id":"{id}","#));
    format!(
        r#"{{"job":"urn:babel:orders:created","trace_id":"7b0c4f0e-5a4e-4f7c-8f5e-9d1f3c2b6a10","data":{{"order_id":{order},"amount":99.9,"currency":"EUR"}},"meta":{{{id}"queue":"orders","lang":"php","schema_version":1}},"attempts":0}}"#
    )
    .into_bytes()
}

struct Show {
    plain: Guard,
    claiming: Guard,
    /// Charges made.
    effects: AtomicU64,
    deliveries: u64,
    skipped: u64,
}

impl Show {
    async fn scenes(&mut self, orders: &[Message; 3], store: &str) -> Result<(), Failure> {
        let [first, second, third] = orders;
        say(&format!(
            "A queue delivers at least once. The guard asks its store (here {store}:) before the\n\
             handler runs, and marks the message's id after it has succeeded. One envelope:\n"
        ))?;
        say(&format!("  {}", String::from_utf8_lossy(&first.body)))?;

        scene("A message is delivered for the first time")?;
        self.deliver(first, true).await?;

        scene("The queue delivers it again, and again")?;
        for _ in 0..4 {
            self.deliver(first, true).await?;
        }

        scene("A handler fails, and the message is retried")?;
        self.deliver(second, false).await?;
        self.deliver(second, true).await?;
        self.deliver(second, true).await?;

        scene("A message has no id: it cannot be recognised, and always runs")?;
        let nameless = Message::without_id(1099);
        self.deliver(&nameless, true).await?;
        self.deliver(&nameless, true).await?;

        scene("Somebody wants the first one again: its mark is forgotten, then it is replayed")?;
        self.plain.forget(&first.id).await?;
        self.deliver(first, true).await?;
        self.deliver(first, true).await?;

        scene("Two copies at once, with claims: the second is parked, not run and not lost")?;
        self.deliver_two_at_once(third).await?;
        Ok(())
    }

    async fn deliver(&mut self, message: &Message, succeed: bool) -> Result<(), Failure> {
        let charge = async |_context| self.charge(succeed);
        let processed = self.plain.process(&message.body, charge).await?;
        self.line(message, &processed, self.effects())
    }

    /// The second copy comes while the first one's handler is running; both
    /// come once more when it has ended.
    async fn deliver_two_at_once(&mut self, message: &Message) -> Result<(), Failure> {
        let delivery = Delivery::from_body(&message.body);
        let mut copy = None;
        let charge = async |_context| {
            let in_between = async |_context| self.charge(true);
            let processed = self.claiming.process(delivery, in_between).await;
            copy = Some((processed, self.effects()));
            self.charge(true)
        };
        let first = self.claiming.process(delivery, charge).await?;
        if let Some((processed, effects)) = copy {
            self.line(message, &processed?, effects)?;
        }
        self.line(message, &first, self.effects())?;

        let charge = async |_context| self.charge(true);
        let again = self.claiming.process(delivery, charge).await?;
        self.line(message, &again, self.effects())
    }

    fn effects(&self) -> u64 {
        self.effects.load(Ordering::Relaxed)
    }

    fn charge(&self, succeed: bool) -> Result<(), &'static str> {
        if !succeed {
            return Err("the card terminal does not answer");
        }
        self.effects.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn line(
        &mut self,
        message: &Message,
        processed: &Processed<(), &'static str>,
        effects: u64,
    ) -> Result<(), Failure> {
        self.deliveries += 1;
        let (decision, colour, why) = match processed {
            Processed::Ran {
                id: Err(reason), ..
            } => (
                "run",
                AnsiColor::Yellow,
                format!("no usable id ({reason}): nothing to mark"),
            ),
            Processed::Ran {
                mark: Mark::Missing(error),
                ..
            } => ("run", AnsiColor::Red, format!("not marked: {error}")),
            Processed::Ran { .. } => (
                "run",
                AnsiColor::Green,
                "not marked yet: charged, then marked".into(),
            ),
            Processed::Failed { error, .. } => {
                ("run", AnsiColor::Red, format!("{error}: not marked"))
            }
            Processed::Skipped { .. } => {
                self.skipped += 1;
                (
                    "skip",
                    AnsiColor::Cyan,
                    "marked: acknowledged without charging".into(),
                )
            }
            Processed::Parked(_) => (
                "park",
                AnsiColor::Yellow,
                "another copy is being handled: deliver it again later".into(),
            ),
        };
        let style = colour.on_default();
        writeln!(
            anstream::stdout(),
            "  {:10}  {style}{decision:4}{style:#}  {why:56}  {effects} {}",
            message.name,
            plural(effects, "charge"),
        )?;
        Ok(())
    }

    fn totals(&self) -> Result<(), Failure> {
        let effects = self.effects();
        say(&format!(
            "\n{} deliveries, {effects} charges: one for each of the three orders, one for the \
             replay that was\nasked for, two for the message without an id. {} deliveries were \
             skipped.\n\nOn your own messages: bq-guard run --help",
            self.deliveries, self.skipped
        ))
    }
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 {
        noun.to_owned()
    } else {
        format!("{noun}s")
    }
}

fn scene(title: &str) -> Result<(), Failure> {
    let bold = Style::new().bold();
    say(&format!("\n{bold}{title}{bold:#}"))
}

fn say(text: &str) -> Result<(), Failure> {
    Ok(writeln!(anstream::stdout(), "{text}")?)
}
