//! Records arrive in every destination, a resumed run continues them, and nothing is shown where nothing is to be.
#![allow(clippy::unwrap_used)]

mod terminal;

use ein_records::{Destinations, Extent, Progress, Record, Recorder, Show};
use indicatif::ProgressDrawTarget;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use terminal::Terminal;

/// Three epochs of four steps, validated at the end of each; the loss falls, and is once not finite.
fn records() -> Vec<Record> {
    (1..=12)
        .map(|step| Record {
            epoch: (step - 1) / 4 + 1,
            step,
            loss: Some(match step {
                7 => f64::INFINITY,
                _ => 2.5 / (step * step) as f64,
            }),
            rate: Some(0.5),
            validation: match step % 4 {
                0 => vec![
                    ("accuracy".into(), 1.0 - 1.0 / step as f64),
                    ("zero".into(), 0.0),
                ],
                _ => vec![],
            },
            examples: step * 64,
            seconds: step as f64 * 0.125,
            epoch_ends: step % 4 == 0,
        })
        .collect()
}

fn everywhere(folder: &Path) -> Destinations {
    Destinations {
        json_lines: Some(folder.join("run.jsonl")),
        csv: Some(folder.join("run.csv")),
        tensorboard: Some(folder.join("events")),
        curves: Some(folder.join("curves.svg")),
    }
}

fn silent() -> Progress {
    Progress::new(Show::Nothing, extent())
}

fn extent() -> Extent {
    Extent {
        steps: 12,
        epochs: Some(3),
        made: 0,
    }
}

fn write(to: &Destinations, resumed: Option<u64>, records: &[Record]) {
    let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let mut recorder = Recorder::open(to, silent(), resumed, now).unwrap();
    records
        .iter()
        .for_each(|record| recorder.record(record).unwrap());
    recorder.finish().unwrap();
}

#[test]
fn lines() {
    let folder = tempfile::tempdir().unwrap();
    write(&everywhere(folder.path()), None, &records());
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let picked = |text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() >= 12);
        [1, 6, 7, 8].map(|at| lines[at]).join("\n")
    };
    insta::assert_snapshot!(picked(&read("run.jsonl")), @r#"
    {"step":2,"epoch":1,"loss":0.625,"rate":0.5,"examples":128,"seconds":0.25}
    {"step":7,"epoch":2,"loss":"inf","rate":0.5,"examples":448,"seconds":0.875}
    {"step":8,"epoch":2,"loss":0.0390625,"rate":0.5,"validation":{"accuracy":0.875,"zero":0.0},"examples":512,"seconds":1.0}
    {"step":9,"epoch":3,"loss":0.030864197530864196,"rate":0.5,"examples":576,"seconds":1.125}
    "#);
    insta::assert_snapshot!(read("run.csv"), @r#"
    step,epoch,loss,rate,examples,seconds,accuracy,zero
    1,1,2.5,0.5,64,0.125,,
    2,1,0.625,0.5,128,0.25,,
    3,1,0.2777777777777778,0.5,192,0.375,,
    4,1,0.15625,0.5,256,0.5,0.75,0
    5,2,0.1,0.5,320,0.625,,
    6,2,0.06944444444444445,0.5,384,0.75,,
    7,2,inf,0.5,448,0.875,,
    8,2,0.0390625,0.5,512,1,0.875,0
    9,3,0.030864197530864196,0.5,576,1.125,,
    10,3,0.025,0.5,640,1.25,,
    11,3,0.02066115702479339,0.5,704,1.375,,
    12,3,0.017361111111111112,0.5,768,1.5,0.9166666666666666,0
    "#);
}

/// The records behind a step, as a process that begins there has them: it counts its own examples and seconds.
fn of_a_process(all: &[Record], made: u64) -> Vec<Record> {
    let own = |record: &Record| Record {
        examples: record.examples - made * 64,
        seconds: record.seconds - made as f64 * 0.125,
        ..record.clone()
    };
    all[made as usize..].iter().map(own).collect()
}

#[test]
fn a_resumed_run_continues_its_files() {
    let mut all = records();
    // A number that a reader of JSON may round to its neighbour.
    all[2].loss = Some(1.7597795128822327);
    for resumed in [0u64, 3, 4, 8, 12] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        write(&everywhere(folder.path()), None, &all);
        let whole = (at("run.jsonl"), at("run.csv"), at("curves.svg"));
        // A run that was killed two steps after its checkpoint, in the middle of a line.
        let killed = (resumed as usize + 2).min(12);
        write(&everywhere(folder.path()), None, &all[..killed]);
        for name in ["run.jsonl", "run.csv"] {
            let text = at(name);
            fs::write(folder.path().join(name), &text[..text.len() - 3]).unwrap();
        }
        if killed < 12 || resumed < 12 {
            write(
                &everywhere(folder.path()),
                Some(resumed),
                &of_a_process(&all, resumed),
            );
            assert_eq!(
                (at("run.jsonl"), at("run.csv"), at("curves.svg")),
                whole,
                "resumed after {resumed}"
            );
        }
        let files = fs::read_dir(folder.path().join("events")).unwrap().count();
        assert!(files >= 2, "every run has its own file of events");
    }
    // There was nothing before: the run is recorded from where it resumes.
    let folder = tempfile::tempdir().unwrap();
    write(&everywhere(folder.path()), Some(8), &all[8..]);
    assert_eq!(
        fs::read_to_string(folder.path().join("run.jsonl"))
            .unwrap()
            .lines()
            .count(),
        4
    );
}

#[test]
fn columns_that_come_later() {
    let folder = tempfile::tempdir().unwrap();
    let to = Destinations {
        csv: Some(folder.path().join("x.csv")),
        ..Destinations::default()
    };
    let mut records = records()[..5].to_vec();
    records[4].validation = vec![("on \"B\", twice".into(), 0.25)];
    write(&to, None, &records);
    let text = fs::read_to_string(folder.path().join("x.csv")).unwrap();
    insta::assert_snapshot!(text, @r#"
    step,epoch,loss,rate,examples,seconds,accuracy,zero,"on ""B"", twice"
    1,1,2.5,0.5,64,0.125,,,
    2,1,0.625,0.5,128,0.25,,,
    3,1,0.2777777777777778,0.5,192,0.375,,,
    4,1,0.15625,0.5,256,0.5,0.75,0,
    5,2,0.1,0.5,320,0.625,,,0.25
    "#);
    write(&to, Some(5), &[]);
    assert_eq!(
        fs::read_to_string(folder.path().join("x.csv")).unwrap(),
        text
    );
}

#[test]
fn what_cannot_be_written_or_continued() {
    let folder = tempfile::tempdir().unwrap();
    let open = |to: &Destinations, resumed| {
        let error = Recorder::open(to, silent(), resumed, SystemTime::now()).unwrap_err();
        error
            .to_string()
            .replace(&folder.path().display().to_string(), "DIR")
    };
    let nowhere = folder.path().join("none/x");
    for to in [
        Destinations {
            json_lines: Some(nowhere.clone()),
            ..Default::default()
        },
        Destinations {
            csv: Some(nowhere.clone()),
            ..Default::default()
        },
        Destinations {
            curves: Some(nowhere.clone()),
            ..Default::default()
        },
    ] {
        assert_eq!(
            open(&to, None),
            "DIR/none/x: cannot be written: no such file or directory"
        );
    }
    let file = folder.path().join("notes.txt");
    fs::write(&file, "mine\nstill mine\n").unwrap();
    let inside = Destinations {
        tensorboard: Some(file.join("x")),
        ..Default::default()
    };
    assert_eq!(
        open(&inside, None),
        "DIR/notes.txt/x: cannot be written: not a directory"
    );
    for to in [
        Destinations {
            json_lines: Some(file.clone()),
            ..Default::default()
        },
        Destinations {
            csv: Some(file.clone()),
            ..Default::default()
        },
    ] {
        let error = open(&to, Some(3));
        assert!(
            error.contains("is no record, so a resumed run cannot continue this file"),
            "{error}"
        );
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "mine\nstill mine\n",
            "and it is left as it is"
        );
    }
}

#[test]
fn the_line_of_a_terminal() {
    let terminal = Terminal::default();
    let target = ProgressDrawTarget::term_like_with_hz(Box::new(terminal.clone()), 255);
    let mut progress = Progress::on(target, extent());
    for record in &records()[..6] {
        progress.show(record);
        std::thread::sleep(Duration::from_millis(10));
    }
    progress.say("saved step 5\n");
    progress.show(&records()[5]);
    std::thread::sleep(Duration::from_millis(10));
    progress.show(&records()[7]);
    progress.finish();
    insta::assert_snapshot!(terminal.contents(), @r#"
    saved step 5
    ━━━━━━━━╸    epoch 2/3  step 8/12  loss 0.0619  accuracy 0.8750  zero 0  512 examples/s  0:01 left
    "#);
}

#[test]
fn plain_lines() {
    let mut progress = Progress::new(Show::Plain, extent());
    let lines: Vec<_> = records()
        .iter()
        .filter_map(|record| progress.line(record))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    epoch 1/3  step 4/12  loss 0.8898  accuracy 0.7500  zero 0  512 examples/s  0:01 left
    epoch 2/3  step 8/12  loss inf  accuracy 0.8750  zero 0  512 examples/s  0:01 left
    epoch 3/3  step 12/12  loss 0.0235  accuracy 0.9167  zero 0  512 examples/s
    "#);
    // Counted in steps: twenty lines, and the last step.
    let extent = Extent {
        steps: 210,
        epochs: None,
        made: 0,
    };
    let mut progress = Progress::new(Show::Plain, extent);
    let record = |step| Record {
        step,
        epoch_ends: step % 7 == 0,
        ..Record::default()
    };
    let shown: Vec<u64> = (1..=210)
        .filter(|step| progress.line(&record(*step)).is_some())
        .collect();
    assert_eq!((shown.len(), shown[0], shown[19]), (20, 11, 210));
    let mut nothing = silent();
    assert!(
        records()
            .iter()
            .all(|record| nothing.line(record).is_none())
    );
}

#[test]
fn curves() {
    let folder = tempfile::tempdir().unwrap();
    let to = everywhere(folder.path());
    write(&to, None, &records());
    let picture = fs::read_to_string(folder.path().join("curves.svg")).unwrap();
    assert!(picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>"));
    for word in [
        "loss of the batch",
        "validation",
        "accuracy",
        "zero",
        "step",
    ] {
        assert!(picture.contains(word), "{word}");
    }
    assert!(
        !picture.contains("NaN") && !picture.contains("inf"),
        "only numbers are drawn"
    );
    // Nothing at all, one point, a constant, and very many points.
    let constant = |n: u64| -> Vec<Record> {
        (1..=n)
            .map(|step| Record {
                step,
                loss: Some(1.0),
                ..Record::default()
            })
            .collect()
    };
    for many in [vec![], constant(1), constant(2), constant(100_000)] {
        write(&to, None, &many);
        let picture = fs::read_to_string(folder.path().join("curves.svg")).unwrap();
        assert!(
            !picture.contains("NaN") && picture.len() < 100_000,
            "{} records",
            many.len()
        );
    }
}

/// The events are read back by TensorBoard's own reader, where it is installed.
#[test]
fn tensorboard_reads_the_events() {
    let there = Command::new("python3")
        .args(["-c", "import tensorboard"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !there {
        println!("skipped: python3 with tensorboard is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let to = everywhere(folder.path());
    let all = records();
    write(&to, None, &all[..10]);
    write(&to, Some(8), &all[8..]);
    let program = r#"
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1]).Reload()
for tag in sorted(events.Tags()["scalars"]):
    print(tag, *(f"{e.step}:{e.value:.9f}@{e.wall_time - 1.8e9:.3f}" for e in events.Scalars(tag)))
"#;
    let output = Command::new("python3")
        .args(["-c", program])
        .arg(folder.path().join("events"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut expected = String::new();
    let mut line = |name: &str, of: &dyn Fn(&Record) -> Option<f64>| {
        expected += name;
        for record in &all {
            if let Some(value) = of(record) {
                let value = value as f32;
                expected += &format!(" {}:{value:.9}@{:.3}", record.step, record.seconds);
            }
        }
        expected.push('\n');
    };
    line("accuracy", &|record| Some(record.validation.first()?.1));
    line("loss", &|record| record.loss);
    line("rate", &|record| record.rate);
    line("zero", &|record| Some(record.validation.get(1)?.1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
