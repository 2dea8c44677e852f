//! The worker processes, as the queue sees them.

use crate::clock;
use crate::messages::{Answer, Delivery};
use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// What a worker's end of the pipe says.
pub(crate) enum Said {
    Answer(Answer),
    /// No more will come: it has ended.
    Ended,
}

/// Handed to whoever waits, with the worker's number.
pub(crate) type Saying = (u32, Said);

/// One worker process.
pub(crate) struct Worker {
    /// From one on, no two the same in a rig.
    pub(crate) number: u32,
    process: Child,
    input: ChildStdin,
    /// The numbers of the deliveries that it has not answered.
    pub(crate) in_hand: HashSet<u64>,
    /// When it was killed.
    pub(crate) killed: Option<Duration>,
}

impl Worker {
    /// Starts this program again, as a worker.
    pub(crate) fn start(
        number: u32,
        arguments: &[String],
        say: impl Fn(Saying) + Send + 'static,
    ) -> io::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("work")
            .args(arguments)
            .arg(number.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::Error::other("a worker without pipes"));
        };
        std::thread::spawn(move || listen(number, output, say));
        Ok(Self {
            number,
            process,
            input,
            in_hand: HashSet::new(),
            killed: None,
        })
    }

    /// Hands over a delivery. It counts as not answered also if the worker has
    /// ended meanwhile.
    pub(crate) fn hand(&mut self, delivery: &Delivery) -> io::Result<()> {
        self.in_hand.insert(delivery.number);
        let mut line = serde_json::to_vec(delivery)?;
        line.push(b'\n');
        match self.input.write_all(&line) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    /// Kills it (SIGKILL).
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.killed = Some(clock::now());
        self.process.kill()
    }

    /// Waits until it has ended.
    pub(crate) fn reap(mut self) -> io::Result<()> {
        drop(self.input);
        self.process.wait().map(drop)
    }
}

fn listen(number: u32, output: ChildStdout, say: impl Fn(Saying)) {
    let lines = BufReader::new(output).lines();
    // What is cut short by a kill has not been said.
    for line in lines.map_while(Result::ok) {
        if let Ok(answer) = serde_json::from_str(&line) {
            say((number, Said::Answer(answer)));
        }
    }
    say((number, Said::Ended));
}
