//! Signals are noticed, and a second one ends the process.
#![allow(clippy::unwrap_used)]

use einc_driver::interrupt::{Interrupt, Signal};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const CHILD: &str = "EIN_TEST_INTERRUPT_CHILD";

/// Not a test of its own: what the other process runs.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let interrupt = Interrupt::listen().unwrap();
    assert_eq!(interrupt.asked(), None);
    println!("ready");
    let signal = loop {
        match interrupt.asked() {
            Some(signal) => break signal,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    println!("asked by {}", signal.name());
    // Only another signal ends this.
    std::thread::sleep(Duration::from_secs(60));
    std::process::exit(9);
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([format!("-{name}"), child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

#[test]
fn the_first_signal_asks_and_the_second_ends() {
    use std::os::unix::process::ExitStatusExt;
    for (name, number) in [("TERM", 15), ("INT", 2)] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut until = |wanted: &str| {
            let found = lines
                .by_ref()
                .map(Result::unwrap)
                .any(|line| line.ends_with(wanted));
            assert!(found, "{wanted}");
        };
        until("ready");
        signal(&child, name);
        until(&format!("asked by SIG{name}"));
        assert!(
            child.try_wait().unwrap().is_none(),
            "one signal does not end it"
        );
        signal(&child, name);
        assert_eq!(child.wait().unwrap().signal(), Some(number));
    }
}

#[test]
fn statuses_are_a_shells() {
    assert_eq!(
        (Signal::numbered(2), Signal::numbered(15)),
        (Signal::Interrupt, Signal::Terminate)
    );
    assert_eq!(
        (Signal::Interrupt.status(), Signal::Terminate.status()),
        (130, 143)
    );
}
