//! The service's stubs, from a description in Rust: no compiler of protocol buffers is needed.

use tonic_build::manual::{Builder, Method, Service};

fn main() {
    let methods = [("point", "Point"), ("report", "Report")].map(|(name, route)| {
        Method::builder()
            .name(name)
            .route_name(route)
            .input_type("crate::Query")
            .output_type("crate::Row")
            .codec_path("tonic_prost::ProstCodec")
            .build()
    });
    let service = Service::builder().name("Store").package("demo");
    let service = methods
        .into_iter()
        .fold(service, tonic_build::manual::ServiceBuilder::method);
    Builder::new().compile(&[service.build()]);
}
