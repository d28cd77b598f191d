//! A service on tokio alone, of lines: `get 7` is answered by a product as JSON, `lookups` by how often the store was asked.
//!
//! `cargo run --bin service -- 127.0.0.1:8080`

use std::io;

use nuthatch_examples::Products;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Bytes of the longest line: a peer that sends no end of one is left.
const LINE_MAX: u64 = 1024;

async fn answer(products: &Products, line: &str) -> String {
    let product = match line.split_once(' ') {
        None if line == "lookups" => return products.lookups().to_string(),
        Some(("get", id)) => id.parse().map(|id| products.get(id)),
        _ => return "error: get NUMBER, or lookups".to_owned(),
    };
    match product {
        Err(error) => format!("error: {error}"),
        Ok(product) => match product.await {
            Err(error) => format!("error: {error}"),
            Ok(product) => {
                serde_json::to_string(&product).unwrap_or_else(|error| error.to_string())
            }
        },
    }
}

async fn converse(products: Products, peer: TcpStream) -> io::Result<()> {
    let mut peer = BufReader::new(peer);
    loop {
        let mut line = String::new();
        (&mut peer).take(LINE_MAX).read_line(&mut line).await?;
        let Some(line) = line.strip_suffix('\n') else {
            return Ok(());
        };
        let answer = answer(&products, line.trim_end()).await;
        peer.write_all(format!("{answer}\n").as_bytes()).await?;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .ok_or("an address to listen at, such as 127.0.0.1:8080")?;
    let products = Products::new()?;
    let listener = TcpListener::bind(address).await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (peer, _) = listener.accept().await?;
        let products = products.clone();
        // A connection that breaks ends its task.
        tokio::spawn(converse(products, peer));
    }
}
