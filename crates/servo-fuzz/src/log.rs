//! Lines and segments of the log, and the file that says where it begins.

use std::io;
use std::path::Path;
use std::sync::Arc;

use futures::TryStreamExt;
use servo_core::PutId;
use servo_store::testing::{MemoryDisk, parsers};
use servo_store::{FileLog, FileLogOptions, FileSystem, Log, ReadError, Record};

use crate::runtime::wait;
use crate::tables::layout;

/// A line of the log. There is one way to write a record, so a line that is good is the one that we would write.
///
/// The bytes are also read as what follows a checksum that fits them: no fuzzer finds one by chance.
pub fn log_line(bytes: &[u8]) {
    read_line(bytes);
    let mut sealed = format!("{{\"crc\":\"{:08x}\",", crc32fast::hash(bytes)).into_bytes();
    sealed.extend_from_slice(bytes);
    sealed.push(b'}');
    if read_line(&sealed) {
        let behind = [b"torn ", &*sealed].concat();
        assert!(parsers::hides_a_whole_line(&behind), "a whole line is found behind a damaged one");
    }
}

fn read_line(line: &[u8]) -> bool {
    parsers::hides_a_whole_line(line);
    let record = parsers::log_line(line);
    if let Ok(record) = &record {
        let mut written = parsers::write_line(record);
        assert_eq!(written.pop(), Some(b'\n'));
        assert_eq!(written, line, "a line has one text");
    }
    record.is_ok()
}

/// A segment of the log: readers see its lines up to the first bad one, and who opens it to write cuts off a torn tail
/// and nothing else.
pub fn log_segment(bytes: &[u8]) {
    let path = Path::new("/").join(layout().prefix()).join(layout().batch(1));
    let disk = disk_with(&path, bytes).expect("a disk that does not fail");
    let reader = FileLog::open_read_only_with(Arc::new(disk.process()), "/", &layout()).expect("it is there");
    let (before, problem) = wait(records(&reader));
    let whole: Vec<u8> = before.iter().flat_map(parsers::write_line).collect();
    assert!(bytes.starts_with(&whole), "records are the lines of the segment");
    let writer = FileLog::open_with(Arc::new(disk.process()), "/", &layout(), FileLogOptions::default());
    let Ok(writer) = writer else {
        assert!(problem.is_some(), "what can be read can be written on");
        return;
    };
    let kept = disk.read(&path).expect("the segment is there");
    assert!(bytes.starts_with(&kept), "nothing is changed but cut off");
    if problem.is_some() {
        return;
    }
    assert_eq!(kept, whole, "what was read is kept, and nothing else");
    let seq = before.len() as u64 + 1;
    let next = Record { seq, epoch: u64::MAX, put_id: PutId::from_parts(1, 1), payload: "[]".into() };
    wait(writer.append(next.clone())).expect("memory does not fail");
    let (after, problem) = wait(records(&reader));
    assert!(problem.is_none());
    assert_eq!(after, [before, vec![next]].concat());
}

/// A disk with one file.
fn disk_with(path: &Path, bytes: &[u8]) -> io::Result<MemoryDisk> {
    let disk = MemoryDisk::new();
    let files = disk.process();
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    for dir in above {
        files.create_dir(dir)?;
    }
    files.create_new(path)?.append(bytes)?;
    Ok(disk)
}

/// The batches up to the first that cannot be read, and why it cannot.
async fn records(log: &FileLog) -> (Vec<Record>, Option<ReadError>) {
    let (mut read, mut batches) = (Vec::new(), log.read(1));
    loop {
        match batches.try_next().await {
            Ok(Some(record)) => read.push(record),
            Ok(None) => return (read, None),
            Err(error) => return (read, Some(error)),
        }
    }
}

/// The file that says where the log begins.
pub fn boundary(bytes: &[u8]) {
    if let Ok(boundary) = parsers::boundary(bytes) {
        assert!(boundary > 0, "batches are numbered from 1");
        let written = format!("{{\"boundary\":{boundary}}}\n");
        assert_eq!(parsers::boundary(written.as_bytes()).ok(), Some(boundary));
    }
}
