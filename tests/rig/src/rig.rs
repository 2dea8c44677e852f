//! Delivers everything until it is acknowledged, while workers are killed and
//! the server fails.

use crate::fleet::{Said, Saying, Worker};
use crate::messages::{Answer, Delivery, Result as Told};
use crate::queue::{Copy, Queue};
use crate::server::{Fault, Outage, Server};
use crate::settings::{Mode, Settings};
use fastrand::Rng;
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often one copy may be delivered before something must be wrong.
const TOO_OFTEN: u32 = 1_000;
/// How long nothing may happen before something must be wrong.
const STUCK: Duration = Duration::from_secs(120);

/// What can be known without the ledger and the store.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) deliveries: u64,
    pub(crate) parked: u64,
    pub(crate) failed: u64,
    pub(crate) unavailable: u64,
    /// Messages of which a worker said that the mark could not be written.
    pub(crate) unmarked: HashSet<u32>,
    /// When workers were killed, by their numbers.
    pub(crate) killed: HashMap<u32, Duration>,
    pub(crate) outages: Vec<Outage>,
    pub(crate) violations: Vec<String>,
}

/// What befalls a rig.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    Worker,
    Server(Fault),
}

enum News {
    Worker(Saying),
    Outage(Outage),
}

/// The id of a message.
pub(crate) fn id(message: u32) -> String {
    format!("rig-{message}")
}

/// Delivers everything by workers that are started with these arguments.
/// Gives the server back, which runs.
pub(crate) fn deliver(
    settings: &Settings,
    seed: u64,
    server: Server,
    arguments: Vec<String>,
) -> Result<(Record, Server), Box<dyn Error>> {
    let mut rng = Rng::with_seed(seed);
    let (tell, news) = channel();
    let plan = plan(settings, server.can_fail(), &mut rng);
    let (orders, serving) = serve(server, tell.clone());
    let mut rig = Rig {
        settings,
        queue: Queue::new(settings, &mut rng),
        rng,
        workers: Vec::new(),
        started: 0,
        arguments,
        news,
        tell,
        orders,
        plan,
        due: Vec::new(),
        record: Record::default(),
    };
    rig.deliver_all()?;
    rig.finish(serving)
}

struct Rig<'s> {
    settings: &'s Settings,
    rng: Rng,
    queue: Queue,
    workers: Vec<Worker>,
    /// How many workers there have been.
    started: u32,
    arguments: Vec<String>,
    news: Receiver<News>,
    tell: Sender<News>,
    /// Where the server's faults are ordered, which are done beside the work.
    orders: Sender<Fault>,
    /// After how many deliveries what is to happen, the next one last.
    plan: Vec<(u64, Trouble)>,
    /// What is to happen in a moment.
    due: Vec<(Instant, Trouble)>,
    record: Record,
}

impl Rig<'_> {
    fn deliver_all(&mut self) -> Result<(), Box<dyn Error>> {
        for _ in 0..self.settings.workers {
            self.start_worker()?;
        }
        while !self.queue.is_empty() {
            self.make_trouble()?;
            self.hand_out()?;
            let next = self.due.iter().map(|(at, _)| *at).chain(self.queue.next());
            let now = Instant::now();
            let wait = next
                .min()
                .map_or(STUCK, |at| at.saturating_duration_since(now));
            match self.news.recv_timeout(wait) {
                Ok(News::Outage(outage)) => self.record.outages.push(outage),
                Ok(News::Worker((from, Said::Answer(answer)))) => self.answered(from, answer),
                Ok(News::Worker((from, Said::Ended))) => self.ended(from)?,
                Err(RecvTimeoutError::Timeout) if wait < STUCK => {}
                Err(_) => {
                    let text = format!("no answer for {STUCK:?}, with deliveries in hand");
                    self.record.violations.push(text);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn start_worker(&mut self) -> Result<(), Box<dyn Error>> {
        let tell = self.tell.clone();
        // Nobody listens any more at the rig's end.
        let say = move |saying| drop(tell.send(News::Worker(saying)));
        self.started += 1;
        let worker = Worker::start(self.started, &self.arguments, say)?;
        self.workers.push(worker);
        Ok(())
    }

    fn make_trouble(&mut self) -> Result<(), Box<dyn Error>> {
        let now = Instant::now();
        while let Some((after, trouble)) = self.plan.last().copied()
            && after <= self.queue.delivered
        {
            self.plan.pop();
            // Anywhere in a decision, a handler or a settlement.
            let at = now + Duration::from_micros(self.rng.u64(0..20_000));
            self.due.push((at, trouble));
        }
        let (happen, due) = self.due.iter().partition(|(at, _)| *at <= now);
        self.due = due;
        let happen: Vec<_> = happen;
        for (_, trouble) in happen {
            match trouble {
                // Its end will say if it could not be done.
                Trouble::Server(fault) => drop(self.orders.send(fault)),
                Trouble::Worker => self.kill_worker()?,
            }
        }
        Ok(())
    }

    fn kill_worker(&mut self) -> Result<(), Box<dyn Error>> {
        let busy = |worker: &&mut Worker| worker.killed.is_none() && !worker.in_hand.is_empty();
        let busy: Vec<_> = self.workers.iter_mut().filter(busy).collect();
        if !busy.is_empty() {
            let chosen = self.rng.usize(0..busy.len());
            for worker in busy.into_iter().skip(chosen).take(1) {
                worker.kill()?;
            }
        }
        Ok(())
    }

    fn hand_out(&mut self) -> Result<(), Box<dyn Error>> {
        let now = Instant::now();
        loop {
            let jobs = usize::from(self.settings.jobs);
            let free =
                |worker: &&mut Worker| worker.killed.is_none() && worker.in_hand.len() < jobs;
            let idlest = self.workers.iter_mut().filter(free);
            let Some(worker) = idlest.min_by_key(|worker| worker.in_hand.len()) else {
                return Ok(());
            };
            let Some((number, copy)) = self.queue.deliver(now) else {
                return Ok(());
            };
            if copy.times > TOO_OFTEN {
                let text = format!("{}: delivered {TOO_OFTEN} times", id(copy.message));
                self.record.violations.push(text);
                self.queue.acknowledge(number);
                continue;
            }
            worker.hand(&Delivery {
                number,
                body: body(copy),
                work_ms: work_ms(self.settings, &mut self.rng),
                fails: self.rng.u32(0..30) == 0,
            })?;
        }
    }

    fn answered(&mut self, from: u32, answer: Answer) {
        let number = answer.number;
        if let Some(worker) = self.workers.iter_mut().find(|worker| worker.number == from) {
            worker.in_hand.remove(&number);
        }
        if answer.result.acknowledges() {
            let copy = self.queue.acknowledge(number);
            if let (Some(copy), Told::Unmarked) = (copy, &answer.result) {
                self.record.unmarked.insert(copy.message);
            }
            return;
        }
        let wait = match answer.result {
            Told::Parked { left_ms } => {
                self.record.parked += 1;
                // Most come before the lease has ended, as from a queue that
                // does not know of leases.
                self.rng.u64(1..=left_ms.clamp(1, 200))
            }
            Told::Failed => {
                self.record.failed += 1;
                self.rng.u64(0..20)
            }
            Told::Unavailable => {
                self.record.unavailable += 1;
                self.rng.u64(20..100)
            }
            Told::Refused(why) => {
                self.record
                    .violations
                    .push(format!("delivery {number}: {why}"));
                1_000
            }
            Told::Marked | Told::Unmarked | Told::Skipped => 0,
        };
        let at = Instant::now() + Duration::from_millis(wait);
        self.queue.give_back(number, at);
    }

    /// What it had in hand comes again, another worker starts.
    fn ended(&mut self, from: u32) -> Result<(), Box<dyn Error>> {
        let Some(place) = self.workers.iter().position(|worker| worker.number == from) else {
            return Ok(());
        };
        let worker = self.workers.swap_remove(place);
        let Some(killed) = worker.killed else {
            return Err(format!("worker {from} ended by itself").into());
        };
        self.record.killed.insert(from, killed);
        for number in &worker.in_hand {
            self.queue.give_back(*number, Instant::now());
        }
        worker.reap()?;
        self.start_worker()
    }

    fn finish(mut self, serving: JoinHandle<Server>) -> Result<(Record, Server), Box<dyn Error>> {
        for worker in self.workers.drain(..) {
            if let Some(killed) = worker.killed {
                self.record.killed.insert(worker.number, killed);
            }
            worker.reap()?;
        }
        drop(self.orders);
        let server = serving.join().map_err(|_| "the server did not come back")?;
        let late = self.news.try_iter().filter_map(|news| match news {
            News::Outage(outage) => Some(outage),
            News::Worker(_) => None,
        });
        self.record.outages.extend(late);
        self.record.deliveries = self.queue.delivered;
        Ok((self.record, server))
    }
}

/// Does to the server what it is told, and tells of it.
fn serve(mut server: Server, tell: Sender<News>) -> (Sender<Fault>, JoinHandle<Server>) {
    let (orders, told) = channel();
    let serving = std::thread::spawn(move || {
        for fault in told {
            // Nobody listens any more if the rig has come to an early end.
            drop(tell.send(News::Outage(server.suffer(fault))));
        }
        server
    });
    (orders, serving)
}

/// When in the course of the work what happens, the first one last.
fn plan(settings: &Settings, can_fail: bool, rng: &mut Rng) -> Vec<(u64, Trouble)> {
    let total = u64::from(settings.messages) * u64::from(settings.copies);
    let kills = total * u64::from(settings.kills) / 1_000;
    let mut plan: Vec<_> = (0..kills).map(|_| Trouble::Worker).collect();
    if can_fail {
        let down = |rng: &mut Rng| Duration::from_millis(rng.u64(0..300));
        plan.extend((0..settings.restarts).map(|_| {
            let down = down(rng);
            Trouble::Server(if rng.bool() {
                Fault::Kill(down)
            } else {
                Fault::End(down)
            })
        }));
        plan.extend((0..settings.pauses).map(|_| {
            // Most of them longer than a lease lives without being extended.
            let stopped = rng.u64(settings.lease / 4..=settings.lease * 5 / 4);
            Trouble::Server(Fault::Pause(Duration::from_millis(stopped)))
        }));
    }
    let mut plan: Vec<_> = plan
        .into_iter()
        .map(|trouble| (rng.u64(0..total), trouble))
        .collect();
    plan.sort_by_key(|(after, _)| std::cmp::Reverse(*after));
    plan
}

/// Mostly a few milliseconds; some take longer than a lease lives without
/// being extended, or for a while hold a lock that others wait for.
fn work_ms(settings: &Settings, rng: &mut Rng) -> u64 {
    if rng.u32(0..40) == 0 {
        let longest = match settings.mode {
            Mode::Seen | Mode::Claim => settings.lease * 2,
            Mode::Transaction => settings.lease / 8,
        };
        rng.u64(0..=longest)
    } else {
        rng.u64(0..=8)
    }
}

fn body(copy: Copy) -> String {
    let id = id(copy.message);
    let attempts = copy.times;
    format!(
        r#"{{"job":"urn:babel:rig:effect","data":{{}},"meta":{{"id":"{id}"}},"attempts":{attempts}}}"#
    )
}
