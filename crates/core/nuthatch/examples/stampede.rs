//! A page cache in front of a slow source: many threads ask for the same few pages, each page is
//! rendered once.
//!
//! `cargo run --release -p nuthatch --example stampede`

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nuthatch::Cache;

static RENDERED: AtomicU32 = AtomicU32::new(0);

fn render(page: u32) -> Vec<u8> {
    RENDERED.fetch_add(1, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(50));
    format!("<h1>page {page}</h1>").into_bytes()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cache = Cache::builder()
        .memory_limit(16 << 20)
        .maintenance_thread(true)
        .build()?;
    let minute = Duration::from_secs(60);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for page in 0..5 {
                    let key = format!("page:{page}");
                    let html = cache.get_or_insert_with(&key, minute, || render(page));
                    assert!(html.is_ok_and(|html| html.starts_with(b"<h1>")));
                }
            });
        }
    });
    println!(
        "40 requests, {} pages rendered",
        RENDERED.load(Ordering::Relaxed)
    );
    println!("{:?}", cache);
    Ok(())
}
