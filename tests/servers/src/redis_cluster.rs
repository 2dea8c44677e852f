//! A cluster of Redis servers, and slots on the move.

use crate::Redis;
use crate::redis::wait_for;

const SLOTS: u16 = 16_384;

/// Masters that share the slots evenly; no replicas.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
    /// Their names among themselves.
    names: Vec<String>,
}

impl RedisCluster {
    /// Starts so many nodes, with these arguments of `redis-server` beside the
    /// usual ones.
    ///
    /// # Panics
    ///
    /// If it is installed and does not start, or with `CI=true` is not
    /// installed.
    #[must_use]
    pub fn start(size: u16, arguments: &[&str]) -> Option<Self> {
        let cluster = ["--cluster-enabled", "yes"];
        let arguments = [&cluster[..], arguments].concat();
        let nodes = (0..size)
            .map(|_| Redis::start(&arguments))
            .collect::<Option<Vec<_>>>()?;
        let names = nodes
            .iter()
            .map(|node| node.command(&["CLUSTER", "MYID"]))
            .collect();
        let cluster = Self { nodes, names };
        for (index, node) in (0..).zip(&cluster.nodes) {
            let share = SLOTS.div_ceil(size);
            let slots =
                (index * share..SLOTS.min((index + 1) * share)).map(|slot| slot.to_string());
            let words: Vec<String> = ["CLUSTER".into(), "ADDSLOTS".into()]
                .into_iter()
                .chain(slots)
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let () = node.command(&words);
            // Masters that come up with one epoch would quarrel.
            let () = node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
            let port = cluster.nodes[0].port().to_string();
            let () = node.command(&["CLUSTER", "MEET", "127.0.0.1", &port]);
        }
        cluster.wait_until_whole();
        Some(cluster)
    }

    /// The nodes.
    #[must_use]
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// The nodes, to stop and start them.
    pub fn nodes_mut(&mut self) -> &mut [Redis] {
        &mut self.nodes
    }

    /// `host:port` of all nodes, with commas between.
    #[must_use]
    pub fn addresses(&self) -> String {
        let addresses: Vec<String> = self.nodes.iter().map(Redis::address).collect();
        addresses.join(",")
    }

    /// The slot of a key.
    #[must_use]
    pub fn slot(&self, key: &str) -> u16 {
        self.nodes[0].command(&["CLUSTER", "KEYSLOT", key])
    }

    /// Which node has a slot, by its own word.
    ///
    /// # Panics
    ///
    /// If none has it.
    #[must_use]
    pub fn owner(&self, slot: u16) -> usize {
        let owns = |node: &Redis| {
            let nodes: String = node.command(&["CLUSTER", "NODES"]);
            let own = nodes.lines().find(|line| line.contains("myself"));
            own.is_some_and(|line| {
                line.split_whitespace().skip(8).any(|range| {
                    let (first, last) = range.split_once('-').unwrap_or((range, range));
                    first.parse().is_ok_and(|first: u16| first <= slot)
                        && last.parse().is_ok_and(|last: u16| slot <= last)
                })
            })
        };
        self.nodes.iter().position(owns).expect("an owner")
    }

    /// Opens a slot for moving: from now on the owner sends whoever asks for a
    /// key that it does not have to the other node (ASK).
    pub fn begin_move(&self, slot: u16, to: usize) {
        let from = self.owner(slot);
        let slot = slot.to_string();
        self.set_slot(to, &[&slot, "IMPORTING", &self.names[from]]);
        self.set_slot(from, &[&slot, "MIGRATING", &self.names[to]]);
    }

    /// Moves the keys of an opened slot.
    pub fn move_keys(&self, slot: u16, to: usize) {
        let from = &self.nodes[self.owner(slot)];
        let port = self.nodes[to].port().to_string();
        loop {
            let words = ["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), "100"];
            let keys: Vec<String> = from.command(&words);
            if keys.is_empty() {
                return;
            }
            for key in keys {
                // It may have expired meanwhile, which is NOKEY.
                let _: String = from.command(&["MIGRATE", "127.0.0.1", &port, &key, "0", "5000"]);
            }
        }
    }

    /// Gives the slot to the other node: from now on the one that had it
    /// redirects for good (MOVED).
    pub fn end_move(&self, slot: u16, to: usize) {
        for node in [to, self.owner(slot)] {
            self.set_slot(node, &[&slot.to_string(), "NODE", &self.names[to]]);
        }
    }

    fn set_slot(&self, node: usize, words: &[&str]) {
        let () = self.nodes[node].command(&[&["CLUSTER", "SETSLOT"], words].concat());
    }

    fn wait_until_whole(&self) {
        let whole = |node: &Redis| {
            let info: String = node.command(&["CLUSTER", "INFO"]);
            let nodes = format!("cluster_known_nodes:{}\r", self.nodes.len());
            // Without full coverage the state is ok before all slots are known.
            let slots = format!("cluster_slots_ok:{SLOTS}\r");
            info.contains("cluster_state:ok") && info.contains(&slots) && info.contains(&nodes)
        };
        wait_for("the cluster", || self.nodes.iter().all(whole));
    }
}
