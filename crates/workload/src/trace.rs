//! Recorded arrivals.

use std::path::{Path, PathBuf};

use csv::StringRecord;
use headway_words::nearest;

use crate::class_name::not_reserved;
use crate::csv_rows::{Checked, at, csv_error, csv_reader, service_time, ungrouped, with_header};
use crate::duration;
use crate::error::{Error, Located, Problem, unreadable};
use crate::file::{TRACE_BYTES_MAX, read_regular};
use crate::log::model::ServiceModel;
use crate::section::Document;
use crate::timestamp;
use crate::trace_options::TraceOptions;

/// The columns a trace must have, in any order and beside any others.
pub(crate) const COLUMNS: [&str; 3] = ["time", "class", "service"];

/// A recorded sequence of requests.
///
/// As a file: CSV with a header row that contains the columns `time` (never falling; the first arrival is time 0, whatever the
/// file counts from),
/// `class` (a name) and `service` (its service time, at least 1 ns), in any order; other columns are
/// ignored. A number without a unit is microseconds, and may be written `1.5e+06` or, quoted, `1,000`; a time may also be one of the calendar,
/// `2023-11-16T18:17:03.97Z`. Blank lines and lines that start with `#` are skipped, except for a header row.
///
/// ```
/// use headway_workload::{Generator, Offered, Trace};
/// let text = "time,class,service\n0,GET,1.5\n2.5us,SCAN,635us\n";
/// let workload = Trace::from_csv_str(text, "db.csv")?.into_workload("db");
/// let arrivals: Vec<_> = Generator::new(&workload, Offered::Rate(1.0), 1).collect();
/// assert_eq!((arrivals[1].at_ns, arrivals[1].class, arrivals[1].service_ns), (2_500, 1, 635_000));
/// assert_eq!(arrivals.len(), 2);
/// # Ok::<(), headway_workload::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    file: PathBuf,
    classes: Vec<String>,
    records: Vec<TraceRecord>,
    /// Rows left out, since their requests took no time.
    left_out: u64,
}

/// One recorded request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRecord {
    /// When it arrived, after the first of the trace.
    pub at_ns: u64,
    /// Its class, an index into [`Trace::classes`].
    pub class: u16,
    /// Its service time, ns, at least 1.
    pub service_ns: u64,
}

impl Trace {
    /// Reads a trace file.
    ///
    /// # Errors
    /// [`Error::Read`] when the file cannot be read, [`Error::Located`] when a line is wrong.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = read_regular(path, TRACE_BYTES_MAX)
            .map_err(|source| unreadable("trace", path.to_owned(), source))?;
        Self::from_csv_str(&text, path)
    }

    /// Reads a trace from a text; `path` is named in errors and by [`Workload::to_toml`](crate::Workload::to_toml).
    ///
    /// # Errors
    /// [`Error::Located`] when a line is wrong or there is no record.
    pub fn from_csv_str(text: &str, path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::from_csv_with(text, path.as_ref(), &TraceOptions::default())
    }

    /// Reads a trace from a text. A text without a column of service times gets those of the options.
    pub(crate) fn from_csv_with(
        text: &str,
        path: &Path,
        options: &TraceOptions,
    ) -> Result<Self, Error> {
        let text = &with_header(text, &COLUMNS[..2]);
        let document = Document { path, text };
        let mut reader = csv_reader(text, true);
        let header = reader
            .headers()
            .map_err(|error| csv_error(document, &error))?;
        let columns = columns(header, &options.services)
            .map_err(|(key, problem)| at(document, header, key, problem))?;
        let mut trace = Self::empty(path.to_owned());
        for row in reader.records() {
            let row = row.map_err(|error| csv_error(document, &error))?;
            trace
                .push(&row, columns, options)
                .map_err(|(key, problem)| at(document, &row, key, problem))?;
        }
        trace.filled(document)
    }

    /// A trace of columns: when each request arrived, its class as an index into `classes`, and its service time; times of whatever start, in ns. `name` is
    /// named in errors, whose lines are rows, counted from 1.
    ///
    /// # Errors
    /// [`Error::Located`] when the columns differ in length or are empty, a time falls, a service time is 0, or a class is none of the names.
    pub fn from_columns(
        name: &str,
        classes: Vec<String>,
        at_ns: &[u64],
        class: &[u16],
        service_ns: &[u64],
    ) -> Result<Self, Error> {
        let error = |line: usize, key: &str, problem: Problem| -> Error {
            let (file, key) = (name.to_owned(), key.to_owned());
            Box::new(Located {
                file,
                line,
                key,
                problem,
            })
            .into()
        };
        if class.len() != at_ns.len() || service_ns.len() != at_ns.len() {
            let problem = Problem::Conflict("the columns differ in length");
            return Err(error(
                at_ns.len().min(class.len()).min(service_ns.len()) + 1,
                "",
                problem,
            ));
        }
        let mut trace = Self {
            classes: Vec::new(),
            ..Self::empty(name.into())
        };
        for name in classes {
            let known = trace.classes.len();
            let index = trace
                .class(&name)
                .map_err(|problem| error(0, "classes", problem))?;
            if usize::from(index) < known {
                return Err(error(0, "classes", Problem::DuplicateClass { name }));
            }
        }
        trace.records.reserve_exact(at_ns.len());
        let mut before_ns = 0;
        for (row, ((&at_ns, &class), &service_ns)) in
            at_ns.iter().zip(class).zip(service_ns).enumerate()
        {
            let wrong = |key, problem| Err(error(row + 1, key, problem));
            if at_ns < before_ns {
                let given = format!("{at_ns}ns");
                return wrong("time", Problem::Unsorted { given });
            }
            if usize::from(class) >= trace.classes.len() {
                let given = class.to_string();
                let required = "the index of a class";
                return wrong("class", Problem::Range { required, given });
            }
            if service_ns == 0 {
                return wrong("service", Problem::ZeroService);
            }
            before_ns = at_ns;
            trace.records.push(TraceRecord {
                at_ns,
                class,
                service_ns,
            });
        }
        trace.filled(Document {
            path: Path::new(name),
            text: "",
        })
    }

    /// The trace, if it has a record, its times counted from the first.
    pub(crate) fn filled(mut self, document: Document<'_>) -> Result<Self, Error> {
        let Some(first) = self.records.first() else {
            let problem = Problem::Missing {
                remedy: "a trace needs at least one record",
            };
            return Err(document.error(0, String::new(), problem));
        };
        let first_ns = first.at_ns;
        for record in &mut self.records {
            record.at_ns -= first_ns;
        }
        Ok(self)
    }

    /// The names of the classes, in the order of first appearance.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The requests, in order of arrival.
    #[must_use]
    pub fn records(&self) -> &[TraceRecord] {
        &self.records
    }

    /// The file the trace comes from, as it was named.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Time of the last arrival, in nanoseconds after the first.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.records.last().map_or(0, |record| record.at_ns)
    }

    /// The mean rate in requests per second: the gaps between the first and last arrival ÷ the time
    /// between them. `None` when all arrive at once.
    #[must_use]
    pub fn rate_rps(&self) -> Option<f64> {
        let span_ns = self.duration_ns() - self.records.first()?.at_ns;
        (span_ns > 0).then(|| (self.records.len() - 1) as f64 * 1e9 / span_ns as f64)
    }

    /// Names the file differently, relative to a workload file.
    pub(crate) fn named(self, file: PathBuf) -> Self {
        Self { file, ..self }
    }

    /// Rows that were left out, since their requests took no time.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn push(
        &mut self,
        row: &StringRecord,
        columns: TraceColumns,
        options: &TraceOptions,
    ) -> Checked<()> {
        let (given, class) = (&row[columns.time], &row[columns.class]);
        let at_ns = time(given).map_err(|problem| ("time", problem))?;
        let service_ns = match columns.service {
            None => options
                .services
                .of(class, 0)
                .map_err(|problem| ("class", problem))?,
            Some(service) => match service_time(&row[service]) {
                Err(Problem::Range { .. }) if options.skip_zero => {
                    self.left_out += 1;
                    return Ok(());
                }
                Err(Problem::Range { .. }) => return Err(("service", Problem::ZeroService)),
                service_ns => service_ns.map_err(|problem| ("service", problem))?,
            },
        };
        self.add(given, at_ns, class, service_ns)
    }

    /// A trace without records, to be filled.
    pub(crate) fn empty(file: PathBuf) -> Self {
        Self {
            file,
            classes: Vec::new(),
            records: Vec::new(),
            left_out: 0,
        }
    }

    /// Adds a record; `given` is its time as written.
    pub(crate) fn add(
        &mut self,
        given: &str,
        at_ns: u64,
        class: &str,
        service_ns: u64,
    ) -> Checked<()> {
        if at_ns < self.duration_ns() {
            let given = given.to_owned();
            return Err(("time", Problem::Unsorted { given }));
        }
        let class = self.class(class).map_err(|problem| ("class", problem))?;
        self.records.push(TraceRecord {
            at_ns,
            class,
            service_ns,
        });
        Ok(())
    }

    /// Adds a record without checks.
    pub(crate) fn append(&mut self, at_ns: u64, class: &str, service_ns: u64) {
        let known = self.classes.iter().position(|known| known == class);
        let index = known.unwrap_or_else(|| {
            self.classes.push(class.to_owned());
            self.classes.len() - 1
        });
        self.records.push(TraceRecord {
            at_ns,
            class: index as u16,
            service_ns,
        });
    }

    /// The index of the class called `name`, new or known.
    fn class(&mut self, name: &str) -> Result<u16, Problem> {
        if name.is_empty() {
            return Err(Problem::Missing {
                remedy: "write the name of the request's class",
            });
        }
        if let Some(index) = self.classes.iter().position(|class| class == name) {
            return Ok(index as u16);
        }
        not_reserved(name)?;
        // It stands in tables and errors.
        let name = headway_words::escaped(name);
        let known = self.classes.iter().position(|class| *class == name);
        let index = known.unwrap_or(self.classes.len());
        if index >= usize::from(u16::MAX) {
            let required = "one of at most 65535 names";
            return Err(Problem::Range {
                required,
                given: format!("`{name}`"),
            });
        }
        if known.is_none() {
            self.classes.push(name);
        }
        Ok(index as u16)
    }
}

/// The places of the columns in a row.
#[derive(Clone, Copy)]
struct TraceColumns {
    time: usize,
    class: usize,
    /// None where a model has the service times.
    service: Option<usize>,
}

fn columns(header: &StringRecord, services: &ServiceModel) -> Checked<TraceColumns> {
    let place = |column: &str| header.iter().position(|name| name == column);
    let nearest = |column: &str| nearest(column, header.iter()).map(str::to_owned);
    let required = |column: &'static str| {
        let missing = || {
            let nearest = nearest(column);
            (column, Problem::MissingColumn { nearest })
        };
        place(column).ok_or_else(missing)
    };
    let (time, class, service) = (required("time")?, required("class")?, place("service"));
    match (service, services.is_empty()) {
        (None, true) => {
            let nearest = nearest("service");
            Err(("service", Problem::NoServices { nearest }))
        }
        (Some(_), false) => {
            let why = "the trace has service times of its own; leave out --service, or the column";
            Err(("service", Problem::Conflict(why)))
        }
        _ => Ok(TraceColumns {
            time,
            class,
            service,
        }),
    }
}

/// A time of the calendar, or a number, microseconds without a unit.
fn time(text: &str) -> Result<u64, Problem> {
    if timestamp::is_date(text) {
        let given = text.to_owned();
        return timestamp::parse(text).ok_or(Problem::Timestamp { given });
    }
    Ok(duration::parse_or_us(&ungrouped(text))?)
}
