//! A web service on actix-web: `/products/7` from the cache or the store, `/lookups` how often the store was asked.
//!
//! `cargo run --features actix --bin actix -- 127.0.0.1:8080`

use actix_web::error::{ErrorInternalServerError, ErrorNotFound};
use actix_web::web::{Data, Json, Path};
use actix_web::{App, HttpServer, get};
use nuthatch::TypedError;
use nuthatch_examples::{Product, Products};

#[get("/products/{id}")]
async fn product(products: Data<Products>, id: Path<u64>) -> actix_web::Result<Json<Product>> {
    products
        .get(*id)
        .await
        .map(Json)
        .map_err(|error| match error {
            TypedError::Load(_) => ErrorNotFound(error.to_string()),
            _ => ErrorInternalServerError(error.to_string()),
        })
}

#[get("/lookups")]
async fn lookups(products: Data<Products>) -> String {
    products.lookups().to_string()
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .ok_or("an address to listen at, such as 127.0.0.1:8080")?;
    let products = Data::new(Products::new()?);
    // One cache for all of its threads.
    let app = move || {
        App::new()
            .app_data(products.clone())
            .service(product)
            .service(lookups)
    };
    let server = HttpServer::new(app).bind(address)?;
    for address in server.addrs() {
        println!("{address}");
    }
    server.run().await?;
    Ok(())
}
