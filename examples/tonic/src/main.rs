//! A gRPC service whose requests run in a pool: points pass reports, and reports beyond nine get `RESOURCE_EXHAUSTED`.

use headway_pool::{ClassOptions, Pool};
use headway_tonic_example::{Query, Row, store_server};
use headway_tower::ScheduleLayer;
use std::time::{Duration, Instant};
use tonic::{Request, Response, Status, codegen::http, transport::Server};

struct Store;

/// Computes for as long as asked.
fn compute(query: Query) -> Result<Response<Row>, Status> {
    let (begun, mut steps) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_micros(query.micros) {
        steps += 1;
    }
    Ok(Response::new(Row { steps }))
}

#[tonic::async_trait]
impl store_server::Store for Store {
    async fn point(&self, query: Request<Query>) -> Result<Response<Row>, Status> {
        compute(query.into_inner())
    }
    async fn report(&self, query: Request<Query>) -> Result<Response<Row>, Status> {
        compute(query.into_inner())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report = ClassOptions::new().workers_at_most(1).queue_limit(8);
    let pool = Pool::builder()
        .class("point", ClassOptions::new())
        .class("report", report)
        .build()?;
    let class = |request: &http::Request<_>| match request.uri().path() {
        "/demo.Store/Report" => "report",
        _ => "point",
    };
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:50051".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    Server::builder()
        .layer(ScheduleLayer::new(&pool, class))
        .add_service(store_server::StoreServer::new(Store))
        .serve_with_incoming(tokio_stream::wrappers::TcpListenerStream::new(listener))
        .await?;
    Ok(())
}
