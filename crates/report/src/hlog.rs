//! HDR histogram logs (`.hlog`), which the field's plotting and comparison tools read.

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::recorder::Recorder;

/// Values are in ns, and the log's "max" column by custom in ms.
const NS_PER_MS: f64 = 1e6;

/// Writes the latency histogram of every class as one interval of an `.hlog`, in the compressed V2
/// encoding and tagged with the class's name.
///
/// `started` and `duration` are those of the measured interval. Spaces and commas, which a tag
/// cannot hold, become underscores; where that is another class's tag already, one more is added.
///
/// # Errors
///
/// Whatever `writer` fails with.
pub fn write_hlog(
    recorder: &Recorder,
    started: SystemTime,
    duration: Duration,
    writer: &mut impl Write,
) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Headway latencies by class, in nanoseconds]")
        .with_start_time(started)
        .with_base_time(started)
        .with_max_value_divisor(NS_PER_MS)
        .begin_log_with(writer, &mut serializer)?;
    let names = recorder.classes().iter().map(|class| &*class.meta().name);
    for (class, tag) in recorder.classes().iter().zip(tags(names)) {
        let histogram = class.latency_ns().to_hdr();
        log.write_histogram(&histogram, Duration::ZERO, duration, Tag::new(&tag))
            .map_err(|error| io::Error::other(format!("cannot encode class `{tag}`: {error:?}")))?;
    }
    Ok(())
}

/// A tag for each class, no two alike: readers put together what has one tag. A name that is fit for a tag is its own.
fn tags<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let is_fit = |name: &&str| Tag::new(name).is_some();
    let mut used: HashSet<String> = names.clone().filter(is_fit).map(str::to_owned).collect();
    names
        .map(|name| {
            let mut tag = name.replace([',', ' ', '\n', '\r'], "_");
            while !is_fit(&name) && !used.insert(tag.clone()) {
                tag.push('_');
            }
            tag
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::ClassMeta;
    use hdrhistogram::Histogram as HdrHistogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    /// Decodes standard base64, by hand since only this test needs it.
    fn base64(text: &str) -> Vec<u8> {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let (mut bits, mut held, mut bytes) = (0_u32, 0, Vec::new());
        for symbol in text.bytes().filter(|&symbol| symbol != b'=') {
            let six = alphabet
                .iter()
                .position(|&letter| letter == symbol)
                .unwrap() as u32;
            (bits, held) = (bits << 6 | six, held + 6);
            if held >= 8 {
                held -= 8;
                bytes.push((bits >> held) as u8);
            }
        }
        bytes
    }

    #[test]
    fn a_log_reads_back_class_by_class() {
        let mut recorder = Recorder::new(&[
            ClassMeta::new("short", 500.0),
            ClassMeta::new("long scan", 5e5),
        ]);
        for latency_ns in 1..=1000 {
            recorder.record(0, latency_ns, 500);
        }
        let mut log = Vec::new();
        let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        write_hlog(&recorder, started, Duration::from_secs(2), &mut log).unwrap();

        let entries = IntervalLogIterator::new(&log).map(Result::unwrap);
        let intervals: Vec<_> = entries
            .filter_map(|entry| match entry {
                LogEntry::Interval(interval) => Some(interval),
                _ => None,
            })
            .collect();
        let tags = intervals
            .iter()
            .map(|interval| interval.tag().unwrap().as_str());
        assert_eq!(tags.collect::<Vec<_>>(), ["short", "long_scan"]);
        assert_eq!(intervals[0].duration(), Duration::from_secs(2));

        let encoded = base64(intervals[0].encoded_histogram());
        let read: HdrHistogram<u64> = Deserializer::new().deserialize(&mut &encoded[..]).unwrap();
        assert_eq!(read.len(), 1000);
        assert_eq!(read.value_at_quantile(0.99), 990);
    }

    #[test]
    fn no_two_classes_have_one_tag() {
        let told = |names: &[&str]| tags(names.iter().copied());
        assert_eq!(told(&["a b", "a,b", "a_b"]), ["a_b_", "a_b__", "a_b"]);
        assert_eq!(told(&["k=v", "long scan"]), ["k=v", "long_scan"]);
    }
}
