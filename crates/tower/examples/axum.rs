//! An axum service whose requests run in a pool: points pass reports, and reports beyond nine are refused.

use axum::{Router, extract::Request, routing::get};
use headway_pool::{ClassOptions, Pool};
use headway_tower::ScheduleLayer;
use std::time::{Duration, Instant};

/// Computes for so long.
async fn compute(for_time: Duration) -> &'static str {
    let begun = Instant::now();
    while begun.elapsed() < for_time {}
    "done\n"
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = Pool::builder()
        .class("point", ClassOptions::new())
        .class(
            "report",
            ClassOptions::new().workers_at_most(1).queue_limit(8),
        )
        .build()?;
    let schedule = ScheduleLayer::new(&pool, |request: &Request| match request.uri().path() {
        "/report" => "report",
        _ => "point",
    });
    let service = Router::new()
        .route("/point", get(|| compute(Duration::from_micros(20))))
        .route("/report", get(|| compute(Duration::from_millis(20))))
        .layer(schedule);
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, service).await?;
    Ok(())
}
