//! The Rust code of the documents about pools, compiled here with what it leaves out. A document's code stands here line by line: where it shows the same
//! functions before and after a change, in a function for each half.
#![allow(
    dead_code,
    unused_variables,
    reason = "code that documents show is compiled, and little of it is run"
)]
#![allow(
    clippy::let_and_return,
    reason = "the code ends where the document's does"
)]

use std::sync::Arc;

use headway_pool::{ClassOptions, JoinError, Pool, SubmitError};

type AnyError = Box<dyn std::error::Error>;
type DbError = std::fmt::Error;
type Row = u64;
type Table = Vec<u64>;

/// A failure of a handler, as axum wants it.
struct AppError(AnyError);

impl<E: Into<AnyError>> From<E> for AppError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl axum::response::IntoResponse for AppError {
    fn into_response(self) -> axum::response::Response {
        self.0.to_string().into_response()
    }
}

struct Json<T>(T);

impl<T> axum::response::IntoResponse for Json<T> {
    fn into_response(self) -> axum::response::Response {
        ().into_response()
    }
}

/// A database that computes on the calling thread.
#[derive(Clone)]
struct Db;

impl Db {
    fn lookup(&self) -> Result<Row, DbError> {
        Ok(0)
    }
    fn aggregate(&self) -> Result<Table, DbError> {
        Ok(Vec::new())
    }
}

/// docs/pool.md, and what `pool` is in docs/moving-to-a-pool.md.
mod pool {
    use super::*;

    fn query(db: &Db) -> Table {
        Vec::new()
    }
    fn lookup(db: &Db, key: u64) -> Row {
        key
    }
    async fn fetch(db: Arc<Db>, key: u64) -> Row {
        key
    }

    #[rustfmt::skip]
    async fn in_short(db: Arc<Db>, key: u64) -> Result<(), AnyError> {
        use headway_pool::{ClassOptions, Pool};
        use std::sync::Arc;

        let pool = Pool::builder()
            .policy("darc-stable")
            .class("point", ClassOptions::new())
            .class("report", ClassOptions::new().workers_at_most(1))
            .build()?;
        let (reported, found) = (Arc::clone(&db), Arc::clone(&db));  // a job owns what it uses
        let rows = pool.submit("report", move || query(&reported)).await?; // a future; no executor is assumed
        let row = pool.run("point", move || lookup(&found, key))?;   // blocks the calling thread
        pool.scope(|scope| scope.submit("point", || lookup(&db, key)))??; // borrows; all done at the end
        pool.spawn("point", async move { fetch(db, key).await }).detach(); // each poll is a job for the policy
        Ok(())
    }

    #[rustfmt::skip]
    fn seen_from_outside() -> Result<(), AnyError> {
        use headway_pool::ControlPlace;
        let pool = Pool::builder()
            .control(ControlPlace::Usual)          // headway ctl status, headway top; or a path
            .metrics("127.0.0.1:9100".parse()?)    // Prometheus and a page; or pool.collector() in a registry of your own, or pool.metrics_text()
            .class("point", ClassOptions::new())
            .build()?;
        Ok(())
    }

    #[rustfmt::skip]
    fn under_axum() -> Result<axum::Router, AnyError> {
        let pool = built()?;
        use axum::{Router, extract::Request, routing::get};
        use headway_tower::ScheduleLayer;
        async fn point() -> &'static str {
            "point"
        }
        async fn report() -> &'static str {
            "report"
        }
        let schedule = ScheduleLayer::new(&pool, |request: &Request| match request.uri().path() {
            "/report" => "report",
            _ => "point",
        });
        let service = Router::new().route("/point", get(point)).route("/report", get(report)).layer(schedule);
        Ok(service)
    }

    #[rustfmt::skip]
    pub(super) fn built() -> Result<Pool, AnyError> {
        let pool = Pool::builder()
            .class("point", ClassOptions::new())
            .class("report", ClassOptions::new())
            .build()?;
        Ok(pool)
    }
}

/// docs/moving-to-a-pool.md.
mod from_spawn_blocking {
    use super::*;
    use axum::{Router, extract::State, routing::get};
    use tokio::task::spawn_blocking;

    #[rustfmt::skip]
    fn before(db: Db) -> Router {
        // Before: reports fill the blocking threads, and points queue behind them or share their cores.
        async fn point(State(db): State<Db>) -> Result<Json<Row>, AppError> {
            Ok(Json(spawn_blocking(move || db.lookup()).await??))
        }
        async fn report(State(db): State<Db>) -> Result<Json<Table>, AppError> {
            Ok(Json(spawn_blocking(move || db.aggregate()).await??))
        }
        let app = Router::new()
            .route("/point", get(point))
            .route("/report", get(report))
            .with_state(db);
        app
    }

    #[rustfmt::skip]
    fn after(pool: Pool, db: Db) -> Router {
        // After: two classes.
        async fn point(State((pool, db)): State<(Pool, Db)>) -> Result<Json<Row>, AppError> {
            Ok(Json(pool.submit("point", move || db.lookup()).await??))
        }
        async fn report(State((pool, db)): State<(Pool, Db)>) -> Result<Json<Table>, AppError> {
            Ok(Json(pool.submit("report", move || db.aggregate()).await??))
        }
        let app = Router::new()
            .route("/point", get(point))
            .route("/report", get(report))
            .with_state((pool, db));
        app
    }
}

mod from_rayon {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use tokio::sync::oneshot;

    /// The two functions of rayon's that the document calls, with their bounds.
    mod rayon {
        use std::marker::PhantomData;

        pub(super) struct Scope<'scope>(PhantomData<&'scope ()>);

        impl<'scope> Scope<'scope> {
            pub(super) fn spawn(&self, body: impl FnOnce(&Scope<'scope>) + Send + 'scope) {
                body(self);
            }
        }

        pub(super) fn spawn(job: impl FnOnce() + Send + 'static) {
            job();
        }

        pub(super) fn scope<'scope, R: Send>(body: impl FnOnce(&Scope<'scope>) -> R + Send) -> R {
            body(&Scope(PhantomData))
        }
    }

    struct Part(u64);
    type Rows = Part;

    impl Part {
        fn total(&self) -> u64 {
            self.0
        }
    }

    #[rustfmt::skip]
    mod before {
        use super::*;

        // Before: a channel for each result.
        async fn total(rows: Arc<Rows>) -> Result<u64, AppError> {
            let (sender, receiver) = oneshot::channel();
            rayon::spawn(move || {
                let _ = sender.send(rows.total());
            });
            Ok(receiver.await?)
        }
        fn totals(parts: &[Part], sums: &[AtomicU64]) {
            rayon::scope(|scope| {
                for (part, sum) in parts.iter().zip(sums) {
                    scope.spawn(move |_| sum.store(part.total(), Relaxed));
                }
            });
        }
    }

    #[rustfmt::skip]
    mod after {
        use super::*;

        // After
        async fn total(pool: &Pool, rows: Arc<Rows>) -> Result<u64, AppError> {
            Ok(pool.submit("report", move || rows.total()).await?)
        }
        fn totals(pool: &Pool, parts: &[Part], sums: &[AtomicU64]) -> Result<(), JoinError> {
            pool.scope(|scope| {
                for (part, sum) in parts.iter().zip(sums) {
                    scope.submit("point", move || sum.store(part.total(), Relaxed))?;
                }
                Ok::<(), SubmitError>(())
            })??;
            Ok(())
        }
    }
}

mod from_a_second_runtime {
    use super::*;
    use tokio::runtime::Handle;

    /// A database that awaits.
    struct Db;

    impl Db {
        async fn lookup(&self) -> Result<Row, DbError> {
            Ok(0)
        }
        async fn aggregate(&self) -> Result<Table, DbError> {
            Ok(Vec::new())
        }
    }

    #[rustfmt::skip]
    fn before() -> Result<(), AnyError> {
        // Before: two runtimes of as many threads as there are processors each, and the kernel divides these.
        let heavy = tokio::runtime::Builder::new_multi_thread()
            .thread_name("heavy")
            .build()?;
        async fn report(heavy: Handle, db: Db) -> Result<Table, AppError> {
            Ok(heavy.spawn(async move { db.aggregate().await }).await??)
        }
        async fn point(db: Db) -> Result<Row, AppError> {
            Ok(db.lookup().await?)
        }
        Ok(())
    }

    #[rustfmt::skip]
    fn after() -> Result<(), AnyError> {
        // After: one pool, whose classes share its workers.
        let pool = Pool::builder()
            .nice(10) // makes way for the threads that serve connections
            .class("point", ClassOptions::new())
            .class("report", ClassOptions::new())
            .build()?;
        async fn report(pool: Pool, db: Db) -> Result<Table, AppError> {
            Ok(pool.spawn("report", async move { db.aggregate().await }).await??)
        }
        async fn point(pool: Pool, db: Db) -> Result<Row, AppError> {
            Ok(pool.spawn("point", async move { db.lookup().await }).await??)
        }
        Ok(())
    }
}

mod from_priorities {
    use super::*;
    use tokio::sync::oneshot;

    /// Any pool with priorities.
    struct Executor;

    impl Executor {
        fn spawn_with_priority(&self, priority: u8, job: impl FnOnce() + Send + 'static) {
            job();
        }
    }

    #[rustfmt::skip]
    async fn before(executor: Executor, db: Arc<Db>) -> Result<(), AnyError> {
        let (point_sender, point_receiver) = oneshot::channel();
        let (report_sender, report_receiver) = oneshot::channel();
        // Before: numbers that somebody chose, and reports that starve.
        const HIGH: u8 = 0;
        const LOW: u8 = 7;
        let reported = Arc::clone(&db);
        executor.spawn_with_priority(HIGH, move || {
            let _ = point_sender.send(db.lookup());
        });
        executor.spawn_with_priority(LOW, move || {
            let _ = report_sender.send(reported.aggregate());
        });
        let (row, table) = (point_receiver.await?, report_receiver.await?);
        Ok(())
    }

    #[rustfmt::skip]
    async fn after(pool: Pool, db: Arc<Db>) -> Result<(), AnyError> {
        // After: what each class takes is learnt.
        let reported = Arc::clone(&db);
        let point = pool.submit("point", move || db.lookup());
        let report = pool.submit("report", move || reported.aggregate());
        let (row, table) = (point.await?, report.await?);
        Ok(())
    }
}

/// The lines without their indentation.
fn flush(text: &str) -> String {
    text.lines()
        .map(|line| line.trim().to_owned() + "\n")
        .collect()
}

/// The blocks of Rust of a document, those that show a change in two halves.
fn shown(document: &str) -> Vec<String> {
    let path = format!("{}/../../docs/{document}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut blocks = text.split("```");
    blocks.next();
    let fenced = blocks.step_by(2);
    let of_rust = fenced.filter_map(|block| {
        let (info, code) = block.split_once('\n')?;
        info.starts_with("rust").then(|| flush(code))
    });
    of_rust
        .flat_map(|code| match code.split_once("\n// After") {
            Some((before, after)) => {
                vec![
                    before.trim_end().to_owned() + "\n",
                    format!("// After{after}"),
                ]
            }
            None => vec![code],
        })
        .collect()
}

#[test]
fn the_code_of_documents_about_pools_is_compiled_here() {
    let here = flush(include_str!("documents.rs"));
    for (document, count) in [("pool.md", 3), ("moving-to-a-pool.md", 9)] {
        let shown = shown(document);
        assert_eq!(shown.len(), count, "{document}");
        for code in shown {
            assert!(
                here.contains(&code),
                "docs/{document} shows other code:\n{code}"
            );
        }
    }
}

#[test]
fn a_pool_of_a_point_and_a_report_runs_both() {
    let pool = pool::built().unwrap();
    assert_eq!(pool.run("point", || Db.lookup()).unwrap().unwrap(), 0);
    let table = pool.run("report", || Db.aggregate()).unwrap().unwrap();
    assert!(table.is_empty());
}
