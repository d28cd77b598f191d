//! Rust's client of Redis and Redlock on three servers: frameworks PORT PORT PORT. Ends with 0 if all is as expected.

use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::MultiplexedConnection;
use redis::caching::CacheConfig;
use redis::{AsyncCommands, AsyncConnectionConfig, Client, RedisResult, Script};
use rslock::LockManager;

#[tokio::main(flavor = "current_thread")]
async fn main() -> RedisResult<()> {
    let servers: Vec<String> = std::env::args()
        .skip(1)
        .map(|port| format!("redis://127.0.0.1:{port}"))
        .collect();
    let client = Client::open(servers[0].as_str())?;
    values(client.get_multiplexed_async_connection().await?).await?;
    channels(&client).await?;
    near_cache(&servers[0]).await?;
    redlock(servers).await;
    Ok(())
}

async fn values(mut connection: MultiplexedConnection) -> RedisResult<()> {
    let () = connection.set_ex("k", "v", 60).await?;
    let found: (String, Option<String>) = connection.mget(&["k", "none"]).await?;
    assert_eq!(found, ("v".to_owned(), None));
    let counted: (u32, u32) = redis::pipe()
        .atomic()
        .incr("n", 2)
        .incr("n", 40)
        .query_async(&mut connection)
        .await?;
    assert_eq!(counted, (2, 42));
    let mut keys: Vec<String> = Vec::new();
    let mut walk = connection.scan_match::<_, String>("?").await?;
    while let Some(key) = walk.next().await {
        keys.push(key?);
    }
    drop(walk);
    keys.sort();
    assert_eq!(keys, ["k", "n"]);
    let cap = Script::new(
        "local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end return n",
    );
    for expected in 1..=2 {
        let counted: u32 = cap
            .key("window")
            .arg(60)
            .invoke_async(&mut connection)
            .await?;
        assert_eq!(counted, expected);
    }
    Ok(())
}

async fn channels(client: &Client) -> RedisResult<()> {
    let mut heard = client.get_async_pubsub().await?;
    heard.subscribe("news").await?;
    let mut says = client.get_multiplexed_async_connection().await?;
    let hearers: u32 = says.publish("news", "nuts").await?;
    assert_eq!(hearers, 1);
    let message = heard.on_message().next().await.expect("a message");
    assert_eq!(message.get_payload::<String>()?, "nuts");
    Ok(())
}

/// Its client keeps what it has read, and the server tells it of changes.
async fn near_cache(server: &str) -> RedisResult<()> {
    let client = Client::open(format!("{server}?protocol=resp3"))?;
    let config = AsyncConnectionConfig::new().set_cache_config(CacheConfig::default());
    let mut reads = client
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    let mut writes = client.get_multiplexed_async_connection().await?;
    let () = writes.set("near", "old").await?;
    for _ in 0..2 {
        assert_eq!(reads.get::<_, String>("near").await?, "old");
    }
    let statistics = reads.get_cache_statistics().expect("it has a cache");
    assert_eq!((statistics.hit, statistics.miss), (1, 1));
    let () = writes.set("near", "new").await?;
    while reads.get::<_, String>("near").await? != "new" {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

async fn redlock(servers: Vec<String>) {
    let mut first = LockManager::new(servers.clone());
    first.set_retry(1, Duration::from_millis(1));
    let mut second = LockManager::new(servers);
    second.set_retry(1, Duration::from_millis(1));
    let minute = Duration::from_secs(60);
    let lock = first.lock("a", minute).await.expect("a lock");
    assert!(second.lock("a", minute).await.is_err(), "it is locked");
    let lock = first.extend(&lock, minute).await.expect("a longer lock");
    assert!(!first.is_freed(&lock).await.expect("an answer"));
    first.unlock(&lock).await;
    let lock = second.lock("a", minute).await.expect("it was unlocked");
    second.unlock(&lock).await;
}
