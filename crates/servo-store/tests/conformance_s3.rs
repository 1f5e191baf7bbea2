//! The log, the blobs and the leases keep every rule on a server that speaks S3.

mod object_storage;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use object_storage::Bucket;
use object_store::ObjectStore;
use object_store::path::Path;
use servo_store::conformance::{every_blob_rule, every_log_rule, layout};
use servo_store::{Blobs, ObjectBlobs, open_object_store};

const BUCKET: &str = "servo-test";

/// moto's server; it ends with this value, and with this process whatever happens to it.
struct S3Server {
    process: Child,
    port: u16,
}

impl S3Server {
    fn start() -> Self {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let python = std::env::var_os("SERVO_TEST_PYTHON")
            .map_or_else(|| here.join("../../.venv/bin/python"), PathBuf::from);
        let help = format!(
            "run `make setup`, or set SERVO_TEST_PYTHON to a Python with moto[server]; tried {python:?}"
        );
        let mut process = Command::new(&python)
            .arg(here.join("tests/s3_server.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start Python: {error}; {help}"));
        let mut line = String::new();
        let stdout = process.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the server says something or ends");
        let port = line.trim().parse().unwrap_or_else(|_| panic!("the S3 server did not start; {help}"));
        let server = Self { process, port };
        server.create_bucket();
        server
    }

    fn create_bucket(&self) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        let host = format!("127.0.0.1:{}", self.port);
        write!(stream, "PUT /{BUCKET} HTTP/1.0\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n")
            .expect("request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answer");
        assert!(answer.contains(" 200 "), "creating the bucket: {answer}");
    }

    fn store(&self) -> Arc<dyn ObjectStore> {
        let option = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let options = [
            option("aws_endpoint", &format!("http://127.0.0.1:{}", self.port)),
            option("aws_allow_http", "true"),
            option("aws_access_key_id", "test"),
            option("aws_secret_access_key", "test"),
            option("aws_region", "us-east-1"),
        ];
        open_object_store(&format!("s3://{BUCKET}"), options).expect("the store opens").0
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let ended = self.process.kill().and_then(|()| self.process.wait());
        if let Err(error) = ended {
            eprintln!("could not stop the S3 server: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_the_blobs_and_the_leases_keep_every_rule_on_s3() {
    let server = S3Server::start();
    let store = server.store();
    let count = AtomicU64::new(0);
    let root = || Path::from(format!("root-{}", count.fetch_add(1, Ordering::Relaxed)));
    every_log_rule(async || Bucket::new(Arc::clone(&store), root(), ())).await;
    every_blob_rule(async || {
        Arc::new(ObjectBlobs::new(Arc::clone(&store), &root(), &layout())) as Arc<dyn Blobs>
    })
    .await;
}
