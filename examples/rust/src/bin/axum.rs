//! A web service on axum: `/products/7` from the cache or the store, `/lookups` how often the store was asked.
//!
//! `cargo run --bin axum -- 127.0.0.1:8080`

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use nuthatch::TypedError;
use nuthatch_examples::{Product, Products};
use tokio::net::TcpListener;

async fn product(
    State(products): State<Products>,
    Path(id): Path<u64>,
) -> Result<Json<Product>, (StatusCode, String)> {
    products.get(id).await.map(Json).map_err(|error| {
        let status = match error {
            TypedError::Load(_) => StatusCode::NOT_FOUND,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, error.to_string())
    })
}

async fn lookups(State(products): State<Products>) -> String {
    products.lookups().to_string()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .ok_or("an address to listen at, such as 127.0.0.1:8080")?;
    let service = Router::new()
        .route("/products/{id}", get(product))
        .route("/lookups", get(lookups))
        .with_state(Products::new()?);
    let listener = TcpListener::bind(address).await?;
    println!("{}", listener.local_addr()?);
    axum::serve(listener, service).await?;
    Ok(())
}
