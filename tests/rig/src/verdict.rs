//! Holds a ledger against the contract, sections 2 and 3.

use crate::ledger::{Entry, Event};
use crate::server::Outage;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

/// Stores count in whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(2);

/// One run of a handler.
#[derive(Clone, Debug)]
struct Run {
    worker: u32,
    delivery: u64,
    token: Option<String>,
    /// When the store was asked whether it may run.
    asked: Duration,
    begun: Duration,
    /// When it ended, and whether with its effect.
    ended: Option<(Duration, bool)>,
    /// Until when the lease lives at least: its length after it was asked for,
    /// or after the last time that its extension was asked for and granted.
    leased_until: Duration,
    /// Since when the store has owed an answer to the wish to extend it.
    unanswered: Option<Duration>,
    /// When the store first said that it is lost.
    lost: Option<Duration>,
}

/// What is known beside the ledger.
pub(crate) struct Circumstances<'r> {
    /// A lease's length, if ids are claimed.
    pub(crate) lease: Option<Duration>,
    /// When workers were killed, by their numbers.
    pub(crate) killed: &'r HashMap<u32, Duration>,
    pub(crate) outages: &'r [Outage],
}

/// What the ledger says.
#[derive(Default)]
pub(crate) struct Verdict {
    /// Handlers that ended with their effect.
    pub(crate) effects: u64,
    /// Those beyond the first of their message.
    pub(crate) duplicates: u64,
    /// Handlers that began while another one's lease, lapsed in an outage, had
    /// left it running.
    pub(crate) overlaps: u64,
    /// The same where no fault of the rig's kept the store from extending the
    /// lease, but it took longer to answer than the lease had left.
    pub(crate) slow: u64,
    /// Promises that were broken, each with its evidence.
    pub(crate) violations: Vec<String>,
    /// The ids whose effect happened.
    pub(crate) done: HashSet<String>,
    /// The ids of which the store has said that they are marked.
    pub(crate) marked: HashSet<String>,
}

pub(crate) fn judge(entries: &[Entry], circumstances: &Circumstances<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    let (runs, marked) = read(entries, circumstances.lease);
    for (id, runs) in &runs {
        let effects = runs
            .iter()
            .filter(|run| matches!(run.ended, Some((_, true))));
        let effects = effects.count() as u64;
        verdict.effects += effects;
        verdict.duplicates += effects.saturating_sub(1);
        if effects > 0 {
            verdict.done.insert(id.clone());
        }
        for run in runs {
            if run.ended.is_none() && !circumstances.killed.contains_key(&run.worker) {
                let text = format!("{id}: never ended, and nobody killed it: {run:?}");
                verdict.violations.push(text);
            }
            if let (Some(lost), Some(_)) = (run.lost, circumstances.lease)
                && lost < run.leased_until
                && run.ended.is_none_or(|(ended, _)| lost < ended)
            {
                let text = format!("{id}: called lost while it lives: {run:?}");
                verdict.violations.push(text);
            }
            if let Some(marked) = marked.get(id)
                && run.asked > *marked
            {
                let text = format!("{id}: ran though marked at {marked:?}: {run:?}");
                verdict.violations.push(text);
            }
        }
        if let Some(lease) = circumstances.lease {
            verdict.hold_apart(id, runs, lease, circumstances);
        }
    }
    verdict.marked = marked.into_keys().collect();
    verdict
}

impl Verdict {
    /// The same of a table that transactions have written, from the number of
    /// each message's effects. Where there is an effect, there is a mark.
    pub(crate) fn of_table(effects: &HashMap<String, u64>) -> Self {
        let mut verdict = Self::default();
        for (id, &count) in effects {
            verdict.effects += count;
            verdict.done.insert(id.clone());
            verdict.marked.insert(id.clone());
            if count > 1 {
                verdict.duplicates += count - 1;
                let text = format!("{id}: {count} effects in transactions");
                verdict.violations.push(text);
            }
        }
        verdict
    }

    /// While a lease lives, nobody else's handler begins. It is given up by a
    /// failure and by nothing else: a success puts a mark in its place, which
    /// lets nobody run either, and one that was killed lets it lapse.
    ///
    /// A handler that still runs after its lease has lapsed is excused, and
    /// counted, if the server was down or stopped at some time between the
    /// lease's last extension and its end; or if the store was asked to extend
    /// it in time, and had not answered when it ended. Otherwise it should have
    /// been extended.
    fn hold_apart(&mut self, id: &str, runs: &[Run], lease: Duration, known: &Circumstances<'_>) {
        for (place, second) in runs.iter().enumerate() {
            for first in &runs[..place] {
                if matches!(first.ended, Some((ended, false)) if ended <= second.begun) {
                    continue;
                }
                if second.begun + ROUNDING < first.leased_until {
                    let text = format!("{id}: two while a lease lives: {first:?}, {second:?}");
                    self.violations.push(text);
                    continue;
                }
                let killed = known.killed.get(&first.worker);
                let stopped = first.ended.map(|(at, _)| at).or(killed.copied());
                if stopped.is_some_and(|stopped| stopped <= second.begun) {
                    continue;
                }
                let extended = first.leased_until.saturating_sub(lease);
                let mut outages = known.outages.iter();
                let asked = first.unanswered;
                if outages.any(|out| out.from <= first.leased_until && extended <= out.to) {
                    self.overlaps += 1;
                } else if asked.is_some_and(|asked| asked < first.leased_until) {
                    self.slow += 1;
                } else {
                    let text = format!("{id}: not kept from lapsing: {first:?}, {second:?}");
                    self.violations.push(text);
                }
            }
        }
    }
}

type Runs = HashMap<String, Vec<Run>>;

/// The runs of each id in the order in which they began, and when each id was
/// first known to be marked.
fn read(entries: &[Entry], lease: Option<Duration>) -> (Runs, HashMap<String, Duration>) {
    // Of each process and id, the answers that no handler has followed yet.
    let mut free: HashMap<_, VecDeque<_>> = HashMap::new();
    let mut runs = Runs::new();
    let mut marked = HashMap::new();
    let lease = lease.unwrap_or_default();
    for entry in entries {
        let (worker, id) = (entry.worker, entry.id.as_str());
        let of_id = runs.entry(id.to_owned()).or_default();
        match &entry.event {
            Event::Free { token, asked } => {
                free.entry((worker, id))
                    .or_default()
                    .push_back((token.clone(), *asked));
            }
            Event::Begun { delivery } => {
                let asked = free.entry((worker, id)).or_default().pop_front();
                let (token, asked) = asked.unwrap_or((None, entry.at));
                of_id.push(Run {
                    worker,
                    delivery: *delivery,
                    token,
                    asked,
                    begun: entry.at,
                    ended: None,
                    leased_until: asked + lease,
                    unanswered: None,
                    lost: None,
                });
            }
            Event::Renewing { token } => {
                if let Some(run) = holder(of_id, token) {
                    run.unanswered = Some(entry.at);
                }
            }
            Event::Kept { token, asked } => {
                if let Some(run) = holder(of_id, token) {
                    run.unanswered = None;
                    run.leased_until = run.leased_until.max(*asked + lease);
                }
            }
            Event::NotKept { token, lost } => {
                if let Some(run) = holder(of_id, token) {
                    // An answer after its end has come too late.
                    if entry.at < run.leased_until {
                        run.unanswered = None;
                    }
                    if *lost {
                        run.lost.get_or_insert(entry.at);
                    }
                }
            }
            Event::Ended { delivery, effect } => {
                let ended = of_id.iter_mut().find(|run| run.delivery == *delivery);
                if let Some(run) = ended {
                    run.ended = Some((entry.at, *effect));
                }
            }
            Event::Marked => {
                let first = marked.entry(id.to_owned()).or_insert(entry.at);
                *first = entry.at.min(*first);
            }
        }
    }
    for runs in runs.values_mut() {
        runs.sort_by_key(|run| run.begun);
    }
    (runs, marked)
}

fn holder<'r>(runs: &'r mut [Run], token: &str) -> Option<&'r mut Run> {
    runs.iter_mut()
        .find(|run| run.token.as_deref() == Some(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_millis(1_000);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn entry(worker: u32, at: u64, event: Event) -> Entry {
        Entry {
            worker,
            id: "a".into(),
            at: ms(at),
            event,
        }
    }

    /// A worker, named like its delivery and its token, begins at this time.
    fn begins(worker: u32, at: u64) -> [Entry; 2] {
        let (token, asked) = (Some(worker.to_string()), ms(at));
        let delivery = u64::from(worker);
        [
            entry(worker, at, Event::Free { token, asked }),
            entry(worker, at, Event::Begun { delivery }),
        ]
    }

    fn ends(worker: u32, at: u64, effect: bool) -> [Entry; 1] {
        let delivery = u64::from(worker);
        [entry(worker, at, Event::Ended { delivery, effect })]
    }

    fn is_marked(worker: u32, at: u64) -> [Entry; 1] {
        [entry(worker, at, Event::Marked)]
    }

    /// Judges with the first worker killed, or the server stopped, at a time.
    fn judged(parts: &[&[Entry]], killed: Option<u64>, stopped: Option<u64>) -> Verdict {
        judge(
            &parts.concat(),
            &Circumstances {
                lease: Some(LEASE),
                killed: &killed.map(|at| (1, ms(at))).into_iter().collect(),
                outages: &stopped
                    .map(|at| Outage {
                        from: ms(at),
                        to: ms(at + 1),
                        restart: false,
                    })
                    .into_iter()
                    .collect::<Vec<_>>(),
            },
        )
    }

    fn broken(parts: &[&[Entry]], killed: Option<u64>, stopped: Option<u64>, promise: &str) {
        let violations = judged(parts, killed, stopped).violations;
        assert_eq!(violations.len(), 1, "{violations:?}");
        assert!(violations[0].contains(promise), "{violations:?}");
    }

    fn kept(parts: &[&[Entry]], killed: Option<u64>, stopped: Option<u64>) -> Verdict {
        let verdict = judged(parts, killed, stopped);
        assert!(verdict.violations.is_empty(), "{:?}", verdict.violations);
        verdict
    }

    #[test]
    fn a_handler_has_its_id_to_itself_while_its_lease_lives() {
        let two = "two while a lease lives";
        let (second, done) = (begins(2, 500), ends(2, 510, true));
        let running: &[&[Entry]] = &[&begins(1, 0), &second, &done, &ends(1, 900, true)];
        broken(running, None, None, two);
        broken(running, None, Some(400), two);
        broken(&[&begins(1, 0), &second, &done], Some(100), None, two);
        // Its effect has happened: a mark is to take the lease's place.
        let over: &[&[Entry]] = &[&begins(1, 0), &ends(1, 100, true), &second, &done];
        broken(over, None, None, two);

        kept(
            &[&begins(1, 0), &ends(1, 100, false), &second, &done],
            None,
            None,
        );
    }

    #[test]
    fn a_lease_is_extended_while_its_handler_runs() {
        let (token, asked) = ("1".to_owned(), ms(600));
        let extended = [entry(1, 600, Event::Kept { token, asked })];
        let (second, done) = (begins(2, 1_500), ends(2, 1_510, true));
        let first = begins(1, 0);
        let late = ends(1, 1_900, true);
        let two = "two while a lease lives";
        broken(&[&first, &extended, &second, &done, &late], None, None, two);

        let lapsed: &[&[Entry]] = &[&first, &second, &done, &late];
        broken(lapsed, None, None, "not kept from lapsing");
        broken(lapsed, None, Some(1_200), "not kept from lapsing");
        assert_eq!(kept(lapsed, None, Some(400)).overlaps, 1);

        let token = "1".to_owned();
        let asked = [entry(1, 600, Event::Renewing { token })];
        let slow: &[&[Entry]] = &[&first, &asked, &second, &done, &late];
        assert_eq!(kept(slow, None, None).slow, 1);
        let (token, lost) = ("1".to_owned(), true);
        let lost = [entry(1, 700, Event::NotKept { token, lost })];
        broken(&[&first, &asked, &lost, &late], None, None, "called lost");
        let (token, lost) = ("1".to_owned(), false);
        let error = [entry(1, 700, Event::NotKept { token, lost })];
        let refused: &[&[Entry]] = &[&first, &asked, &error, &second, &done, &late];
        broken(refused, None, None, "not kept from lapsing");

        let killed = kept(&[&first, &second, &done], Some(100), None);
        assert_eq!((killed.overlaps, killed.effects), (0, 1));
    }

    #[test]
    fn what_is_marked_does_not_run() {
        let once: &[&[Entry]] = &[&begins(1, 0), &ends(1, 10, true), &is_marked(1, 20)];
        let again: [&[Entry]; 2] = [&begins(2, 5_000), &ends(2, 5_010, true)];
        kept(once, None, None);
        broken(&[once, &again].concat(), None, None, "ran though marked");
    }

    #[test]
    fn whoever_is_alive_comes_to_an_end() {
        broken(&[&begins(1, 0)], None, None, "never ended");
        assert!(kept(&[&begins(1, 0)], Some(100), None).done.is_empty());
    }

    #[test]
    fn in_a_transaction_there_is_one_effect() {
        let effects = |count| Verdict::of_table(&HashMap::from([("a".to_owned(), count)]));
        assert!(effects(1).violations.is_empty());
        assert_eq!((effects(2).violations.len(), effects(2).duplicates), (1, 1));
    }
}
