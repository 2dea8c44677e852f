//! A wire between store and server that can be cut, and that remembers what
//! was sent over it.

use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How a reply is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    /// The connection closes.
    Closed,
    /// Nothing more is heard on the connection.
    Silence,
}

#[derive(Clone)]
pub(crate) struct Proxy {
    port: u16,
    state: Arc<Mutex<State>>,
}

struct State {
    /// Where new connections lead.
    server: String,
    /// Whatever holds this text will have its reply lost, one time each.
    losses: Vec<(&'static str, Loss)>,
    /// All that was sent to a server.
    sent: String,
}

impl Proxy {
    pub(crate) async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            state: Arc::new(Mutex::new(State {
                server,
                losses: Vec::new(),
                sent: String::new(),
            })),
        };
        let accepting = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(accepting.clone().carry(client));
            }
        });
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Leads new connections to another server; those that are open stay.
    pub(crate) fn lead_to(&self, server: String) {
        self.state.lock().unwrap().server = server;
    }

    /// Loses the replies to the next requests with these texts, in this order.
    pub(crate) fn lose(&self, losses: &[(&'static str, Loss)]) {
        self.state.lock().unwrap().losses = losses.to_vec();
    }

    /// How often a text was sent.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.state.lock().unwrap().sent.matches(text).count()
    }

    async fn carry(self, mut client: TcpStream) {
        let address = self.state.lock().unwrap().server.clone();
        let Ok(mut server) = TcpStream::connect(address).await else {
            return;
        };
        let (mut request, mut reply) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            tokio::select! {
                read = client.read(&mut request) => {
                    let Ok(length @ 1..) = read else { return };
                    let loss = self.note(&request[..length]);
                    if server.write_all(&request[..length]).await.is_err() {
                        return;
                    }
                    if let Some(loss) = loss {
                        // The server has answered: what was asked is done.
                        let _ = server.read(&mut reply).await;
                        if let Loss::Silence = loss {
                            while let Ok(1..) = client.read(&mut request).await {}
                        }
                        return;
                    }
                }
                read = server.read(&mut reply) => {
                    let Ok(length @ 1..) = read else { return };
                    if client.write_all(&reply[..length]).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn note(&self, request: &[u8]) -> Option<Loss> {
        let request = String::from_utf8_lossy(request);
        let mut state = self.state.lock().unwrap();
        state.sent.push_str(&request);
        let (text, loss) = *state.losses.first()?;
        request.contains(text).then(|| {
            state.losses.remove(0);
            loss
        })
    }
}
