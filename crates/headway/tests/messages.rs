//! The compiler's message for an incomplete builder: its wording, beyond the failure to compile.

use std::path::PathBuf;
use std::process::Command;

/// The façade as it was compiled for this test: the newest, where earlier builds are still there.
fn facade() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let beside = std::fs::read_dir(own.parent().unwrap()).unwrap();
    let libraries = beside.map(|entry| entry.unwrap().path()).filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("libheadway-") && name.ends_with(".rlib")
    });
    let newest = libraries.max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    newest.expect("the façade was compiled for this test")
}

/// The compiler's message for a function with this body.
fn said_of(body: &str) -> String {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("server.rs");
    let text = format!(
        "use headway::prelude::*;\n\
         pub fn started() -> Result<Server, StartError> {{\n{body}\n}}"
    );
    std::fs::write(&source, text).unwrap();
    let facade = facade();
    let output = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()))
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
        ])
        .arg("--extern")
        .arg(format!("headway={}", facade.display()))
        .arg("-L")
        .arg(format!("dependency={}", facade.parent().unwrap().display()))
        .arg("--out-dir")
        .arg(place.path())
        .arg(&source)
        .output()
        .unwrap();
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_compiler_says_what_a_builder_lacks() {
    let no_service =
        said_of(r#"Server::builder().listen_udp("127.0.0.1:0".parse().unwrap()).start()"#);
    assert!(
        no_service.contains("`NoService` does not answer requests"),
        "{no_service}"
    );
    assert!(no_service.contains("`.handler(|call| …)`"), "{no_service}");

    let no_source = said_of("Server::builder().handler(|call| call.reply(b\"pong\")).start()");
    let told = "the server is not told where its requests come from";
    assert!(no_source.contains(told), "{no_source}");
    assert!(no_source.contains("`.listen_udp(address)`"), "{no_source}");

    let no_handler = said_of(
        r#"Server::builder().service(7_u32).listen_udp("127.0.0.1:0".parse().unwrap()).start()"#,
    );
    let told = "`u32` does not answer requests";
    assert!(no_handler.contains(told), "{no_handler}");
    let remedy = "`|call: &mut Call<'_>| …`";
    assert!(no_handler.contains(remedy), "{no_handler}");
}

#[test]
fn a_main_prints_the_sentence_of_an_error() {
    let source = "127.0.0.1:0".parse().unwrap();
    let built = headway::prelude::Server::builder()
        .policy("synergy")
        .resume(headway::runtime::Resume::OwnWorker)
        .handler(|call| call.reply(b"pong"))
        .listen_udp(source);
    let error: Box<dyn std::error::Error> = built.start().err().unwrap().into();
    let printed = format!("Error: {error:?}");
    assert!(
        printed.starts_with("Error: policy: under 'synergy' any worker"),
        "{printed}"
    );
    let error = headway::workload::Workload::resolve("tpc").unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn the_compiler_says_where_long_goes() {
    let started = "Server::builder().handler(|call| call.reply(b\"pong\")).listen_udp(\"127.0.0.1:0\".parse().unwrap()).start()";
    let no_call = said_of(&format!(
        "#[long] fn scan(_: u64) {{}}\nscan(1);\n{started}"
    ));
    let told = "#[long] goes on a function with one parameter `call: &mut Call<'_>`";
    assert!(no_call.contains(told), "{no_call}");
    assert!(no_call.contains("`call.long(|call| …)`"), "{no_call}");
    let fits = said_of(
        "#[long] fn scan(call: &mut Call<'_>) -> Option<u8> { call.fail(); None }\n\
         Server::builder().handler(|call| { scan(call); }).listen_udp(\"127.0.0.1:0\".parse().unwrap()).start()",
    );
    assert_eq!(fits, "");
}

#[test]
fn a_handler_needs_no_types() {
    let said = said_of(
        r#"Server::builder().handler(|call| call.reply(b"pong")).listen_udp("127.0.0.1:0".parse().unwrap()).start()"#,
    );
    assert_eq!(said, "");
}
