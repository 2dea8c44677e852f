//! The servers behave as tests rely on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use test_servers::Redis;

#[test]
fn it_pauses_and_comes_back_with_its_data() {
    let Some(mut redis) = Redis::start(&["--appendonly", "yes", "--appendfsync", "always"]) else {
        return;
    };
    let () = redis.command(&["SET", "key", "value"]);

    let mut raw = TcpStream::connect(redis.address()).unwrap();
    raw.set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    redis.pause();
    raw.write_all(b"PING\r\n").unwrap();
    let mut reply = [0; 7];
    assert!(raw.read_exact(&mut reply).is_err(), "a paused server spoke");
    redis.resume();
    raw.set_read_timeout(None).unwrap();
    raw.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n");

    redis.kill();
    assert!(TcpStream::connect(redis.address()).is_err());
    redis.restart();
    let value: String = redis.command(&["GET", "key"]);
    assert_eq!(value, "value");
}

#[test]
fn two_servers_share_nothing() {
    let (Some(one), Some(other)) = (test_servers::redis(), test_servers::redis()) else {
        return;
    };
    let () = one.command(&["SET", "key", "value"]);
    let found: Option<String> = other.command(&["GET", "key"]);
    assert_eq!(found, None);
    let address = one.address();
    drop(one);
    assert!(TcpStream::connect(address).is_err());
}
